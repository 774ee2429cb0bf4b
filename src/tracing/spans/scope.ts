import { type Context, ROOT_CONTEXT, TraceFlags, trace } from '@opentelemetry/api'
import type { OpenSpan, TraceScope } from '../../contracts/tracing.ts'
import { NO_TRACE_CONTEXT, type TraceContext } from '../../core/causality/trace-context.ts'
import { spanContextOf, traceContextOfSpan } from './span-context.ts'

/** A place in a trace as this thread has it: the context of the API, and whether spans are made under it. */
export interface ThreadScope extends TraceScope {
  readonly context: Context
  readonly isSampled: boolean
}

/** The scope of whatever a plugin makes active by the API. */
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

/** Under a span that is not sampled: nothing is recorded, and what is called from here knows. */
export class PassingScope implements ThreadScope, OpenSpan {
  readonly traceContext: TraceContext
  readonly isSampled = false
  #context: Context | undefined

  constructor(traceContext: TraceContext) {
    this.traceContext = traceContext
  }

  get context(): Context {
    this.#context ??= remoteContext(this.traceContext)
    return this.#context
  }

  end(): void {}
  fail(): void {}
}

/** The context of a span elsewhere. */
export function remoteContext(traceContext: TraceContext): Context {
  if (traceContext === NO_TRACE_CONTEXT) return ROOT_CONTEXT
  const spanContext = spanContextOf(traceContext)
  spanContext.isRemote = true
  return trace.setSpanContext(ROOT_CONTEXT, spanContext)
}
