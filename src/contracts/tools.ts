// The tools of a plugin, and of what registers hooks.

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

/** What `domain.ts` and `app.ts` export by default: it registers hooks, and returns `http` as they make it. */
export type HookSetup = (tools: Tools) => unknown

/**
 * The tools of a plugin whose domain (or application) has hooks: `http` knows what they add to `context`.
 * `constructor({ db, http }: ToolsIn<typeof shop>)`, with `import type shop from '../domain.ts'`.
 */
// biome-ignore lint/suspicious/noExplicitAny: a setup may want the tools of a wider one
export type ToolsIn<Setup extends (tools: any) => unknown> = Omit<Tools, 'http'> & {
  http: Awaited<ReturnType<Setup>> extends Http<infer Added> ? Http<Added> : Http
}
