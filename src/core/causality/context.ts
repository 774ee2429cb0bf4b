import { AsyncLocalStorage } from 'node:async_hooks'
import type { TraceScope } from '../../contracts/tracing.ts'

/** A handler of a plugin, as reports name it. */
export interface Origin {
  /** `<domain>.<ClassName>`. */
  readonly plugin: string
  /** `GET /users/:id`, a subscriber, a job, `onBoot`. */
  readonly handler: string
  /** The plugin's file, where it is the plugin's boot: its name may not be known yet. Left out elsewhere. */
  readonly bootFile?: string
}

export interface RunningTransaction {
  /** False when its function has ended: what it has left behind goes on in its context. */
  isOpen: boolean
}

/** The cause of the code that is running. */
export interface CausalContext {
  /** Id of the event that is being handled: events published now get it as their `parent_id`. Null in an HTTP handler or a job. */
  readonly eventId: string | null
  /** Id of the HTTP request with which the chain of causes began, or null. */
  readonly requestId: string | null
  /** Its position in a trace; null while tracing is off. */
  readonly trace: TraceScope | null
  /** The handler that is running: timers, sockets and promises that it makes carry it on. Null in the runtime's own code. */
  readonly origin: Origin | null
  /** The request that is being handled: its signal is aborted when nobody waits for the answer any more. Left out elsewhere. */
  readonly request?: { readonly signal: AbortSignal } | undefined
  /** The transaction whose function is running, where it keeps others of its thread from writing. Left out elsewhere. */
  readonly transaction?: RunningTransaction | undefined
}

/** Of an event of the runtime itself, and of whatever has no cause. */
export const NO_CAUSE: CausalContext = { eventId: null, requestId: null, trace: null, origin: null }

/** One instance per thread, one `run` per task. On Node 22 each instance uses promise hooks where the context is no frame, which cost time, so there are no others. */
export const causality = new AsyncLocalStorage<CausalContext>()
