import type { Auth } from './auth.ts'
import type { Config } from './config.ts'
import type { Db } from './db.ts'
import type { EventBus } from './event-bus.ts'
import type { Http } from './http.ts'
import type { Logger } from './logger.ts'
import type { Registry } from './registry.ts'
import type { Scheduler } from './scheduler.ts'
import type { State } from './state.ts'
import type { Telemetry } from './telemetry.ts'

/**
 * The tools that a plugin's constructor may destructure. Add a tool of your own by declaration merging:
 * `declare module 'heddle' { interface Tools { mailer: Mailer } }`.
 */
export interface Tools {
  auth: Auth
  config: Config
  db: Db
  event_bus: EventBus
  http: Http
  logger: Logger
  registry: Registry
  scheduler: Scheduler
  state: State
  telemetry: Telemetry
}
