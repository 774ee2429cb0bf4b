import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from './heddle.ts'
import { shareService } from './shared-service.ts'

const EXCHANGE = fileURLToPath(new URL('../fixtures/exchange', import.meta.url))

/** Both listeners, where the platform has both. */
export const LISTENERS = ['auto', 'node'] as const

/** The service that a `describe` of both listeners shares. */
export const shareExchange = (listener: string, env: Record<string, string> = {}): (() => Heddle) =>
  shareService((owner) =>
    startHeddle(owner, { domains: [EXCHANGE], lanes: 2, env: { HTTP_LISTENER: listener, ...env } }),
  )
