import { fileURLToPath } from 'node:url'
import type { Heddle } from './heddle.ts'
import { shareService } from './shared-service.ts'

const EXCHANGE = fileURLToPath(new URL('../fixtures/exchange', import.meta.url))

/** The service that a `describe` of a listener shares. */
export const shareExchange = (env: Record<string, string> = {}): (() => Heddle) =>
  shareService({ domains: [EXCHANGE], lanes: 2, env: { HTTP_COMPRESSION: 'true', ...env } })
