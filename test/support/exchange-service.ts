import { fileURLToPath } from 'node:url'
import type { Heddle } from './heddle.ts'
import { shareService } from './shared-service.ts'

const EXCHANGE = fileURLToPath(new URL('../fixtures/exchange', import.meta.url))

/** The listener that these tests are run on: `npm test -- --listener node` takes the other one. */
export const LISTENERS = [process.env.HTTP_LISTENER === 'node' ? 'node' : 'auto'] as const

/** The service that a `describe` of a listener shares. */
export const shareExchange = (listener: string, env: Record<string, string> = {}): (() => Heddle) =>
  shareService({ domains: [EXCHANGE], lanes: 2, env: { HTTP_LISTENER: listener, ...env } })
