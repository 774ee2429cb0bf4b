// The cause of the code that is running.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { CausalContext } from '../../contracts/tracing.ts'

/** Of an event of the runtime itself, and of whatever has no cause. */
export const NO_CAUSE: CausalContext = { eventId: null, requestId: null, trace: null, origin: null }

/** One instance per thread, one `run` per task. On Node 22 each instance uses promise hooks where the context is no frame, which cost time, so there are no others. */
export const causality = new AsyncLocalStorage<CausalContext>()
