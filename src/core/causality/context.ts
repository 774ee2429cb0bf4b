import { AsyncLocalStorage } from 'node:async_hooks'
import type { TraceScope } from '../../contracts/tracing.ts'

/** What a piece of running code was caused by. */
export interface CausalContext {
  /** The event being handled: the `parent_id` of whatever is published now. Null in an HTTP handler or a job. */
  readonly eventId: string | null
  /** The HTTP request at the root of it all, or null. */
  readonly requestId: string | null
  /** Where in a trace it runs; null while tracing is off. */
  readonly trace: TraceScope | null
}

/** One instance per thread, one `run` per task (on Node 20 and 22 it rests on promise hooks, so its number matters). */
export const causality = new AsyncLocalStorage<CausalContext>()
