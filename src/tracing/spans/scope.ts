import { type Context, ROOT_CONTEXT, TraceFlags, trace } from '@opentelemetry/api'
import type { OpenSpan, TraceScope } from '../../contracts/tracing.ts'
import { randomHex } from '../../core/causality/ids.ts'
import { NO_TRACE_CONTEXT, type TraceContext, UNNAMED_TRACE } from '../../core/causality/trace-context.ts'
import type { TraceSampler } from './sampler.ts'
import { spanContextOf, traceContextOfSpan } from './span-context.ts'

/** A scope in this thread: the context of OpenTelemetry's API, and whether spans below it are recorded. */
export interface ThreadScope extends TraceScope {
  readonly context: Context
  readonly isSampled: boolean
}

/** The scope of a context that a plugin made active through the API, or that came from elsewhere. */
export class ContextScope implements ThreadScope {
  readonly context: Context
  readonly isSampled: boolean
  #traceContext: TraceContext | undefined

  constructor(context: Context) {
    this.context = context
    const spanContext = trace.getSpanContext(context)
    this.isSampled = spanContext !== undefined && (spanContext.traceFlags & TraceFlags.SAMPLED) !== 0
  }

  get traceContext(): TraceContext {
    this.#traceContext ??= traceContextOfSpan(trace.getSpanContext(this.context))
    return this.#traceContext
  }
}

/** The scope below a span that is not sampled: nothing is recorded, and the trace context tells callees so. */
export class PassingScope implements ThreadScope, OpenSpan {
  readonly isSampled = false
  readonly #sampler: TraceSampler
  #traceContext: TraceContext
  #context: Context | undefined

  /** @param traceContext UNNAMED_TRACE: it is made when it is read @param sampler makes its ids then */
  constructor(traceContext: TraceContext, sampler: TraceSampler) {
    this.#traceContext = traceContext
    this.#sampler = sampler
  }

  get traceContext(): TraceContext {
    if (this.#traceContext === UNNAMED_TRACE) this.#traceContext = `00-${this.#sampler.unsampled()}-${randomHex(8)}-00`
    return this.#traceContext
  }

  get context(): Context {
    this.#context ??= remoteContext(this.traceContext)
    return this.#context
  }

  end(): void {}
  fail(): void {}
}

/** The context of a span in another thread or process. */
export function remoteContext(traceContext: TraceContext): Context {
  if (traceContext === NO_TRACE_CONTEXT) return ROOT_CONTEXT
  const spanContext = spanContextOf(traceContext)
  spanContext.isRemote = true
  return trace.setSpanContext(ROOT_CONTEXT, spanContext)
}
