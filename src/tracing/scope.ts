/** Where code is in a trace: as OpenTelemetry's API has it, as a text that crosses threads, and as the causal context of this thread keeps it. */
import {
  type Context,
  type ContextManager,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  type SpanKind,
  SpanStatusCode,
  TraceFlags,
  type TraceState,
  trace,
} from '@opentelemetry/api'
import type { OpenSpan, SpanAttributes, TraceContext, TraceScope } from '../contracts/tracing.ts'
import {
  causality,
  isSampled,
  NO_CAUSE,
  NO_TRACE_CONTEXT,
  spanIdOf,
  traceIdOf,
  tracestateFrom,
  tracestateOf,
  UNNAMED_TRACE,
} from '../core/causality/context.ts'
import { randomHex } from '../core/causality/ids.ts'
import { ATTR, exceptionOf } from './attributes.ts'
import type { TraceSampler } from './sampler.ts'

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

/** A span of the SDK around a plugin's code, and the scope of what runs inside. */
export class SpanScope implements OpenSpan, ThreadScope {
  readonly span: Span
  readonly isSampled = true
  readonly #around: Context
  #context: Context | undefined
  #traceContext: TraceContext | undefined

  constructor(span: Span, around: Context) {
    this.span = span
    this.#around = around
  }

  get context(): Context {
    this.#context ??= trace.setSpan(this.#around, this.span)
    return this.#context
  }

  get traceContext(): TraceContext {
    this.#traceContext ??= traceContextOfSpan(this.span.spanContext())
    return this.#traceContext
  }

  end(): void {
    this.span.end()
  }

  fail(thrown: unknown): void {
    if (!this.span.isRecording()) return
    const { type, message, attributes, more } = exceptionOf(thrown)
    this.span.addEvent('exception', attributes)
    this.span.setAttributes({ [ATTR.ERROR_TYPE]: type, ...more })
    this.span.setStatus({ code: SpanStatusCode.ERROR, message })
    this.span.end()
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

/** A span of the runtime, or the scope that takes its place when it is not sampled. */
export type MadeSpan = SpanScope | PassingScope

/** Begins spans below a scope of its thread; null begins a trace. */
export interface SpanMaker {
  openIn(around: ThreadScope | null, name: string, kind: SpanKind, attributes: SpanAttributes): MadeSpan
}

/** The context of a span in another thread or process. */
export function remoteContext(traceContext: TraceContext): Context {
  if (traceContext === NO_TRACE_CONTEXT) return ROOT_CONTEXT
  const spanContext = spanContextOf(traceContext)
  spanContext.isRemote = true
  return trace.setSpanContext(ROOT_CONTEXT, spanContext)
}

/** A `tracestate` that was checked already: the API's own class drops keys that begin with a digit. */
class CheckedTraceState implements TraceState {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  get(key: string): string | undefined {
    const member = this.#members().find((each) => each.startsWith(`${key}=`))
    return member?.slice(key.length + 1)
  }

  set(key: string, value: string): TraceState {
    const text = tracestateFrom([`${key}=${value}`, ...this.#without(key)].join(','))
    return text === '' ? this : new CheckedTraceState(text)
  }

  unset(key: string): TraceState {
    return new CheckedTraceState(this.#without(key).join(','))
  }

  serialize(): string {
    return this.#text
  }

  #without(key: string): string[] {
    return this.#members().filter((each) => !each.startsWith(`${key}=`))
  }

  #members(): string[] {
    return this.#text.split(',').filter((each) => each !== '')
  }
}

/** The span context of OpenTelemetry's API for a trace context. @param traceContext not empty */
export function spanContextOf(traceContext: TraceContext): SpanContext {
  const spanContext: SpanContext = {
    traceId: traceIdOf(traceContext),
    spanId: spanIdOf(traceContext),
    traceFlags: isSampled(traceContext) ? TraceFlags.SAMPLED : TraceFlags.NONE,
  }
  const tracestate = tracestateOf(traceContext)
  if (tracestate !== '') spanContext.traceState = new CheckedTraceState(tracestate)
  return spanContext
}

/** The trace context of a span context; empty for undefined. */
export function traceContextOfSpan(spanContext: SpanContext | undefined): TraceContext {
  if (spanContext === undefined) return NO_TRACE_CONTEXT
  const { traceId, spanId, traceFlags, traceState } = spanContext
  const flags = (traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'
  const traceparent = `00-${traceId}-${spanId}-${flags}`
  return traceState === undefined ? traceparent : traceparent + traceState.serialize()
}

// biome-ignore lint/suspicious/noExplicitAny: what is called takes and gives whatever it likes
type Callable = (...args: any[]) => any

/** Keeps the API's active context together with the causal context of the running code: one AsyncLocalStorage for both. */
export class CausalContextManager implements ContextManager {
  active(): Context {
    return (causality.getStore()?.trace as ThreadScope | null | undefined)?.context ?? ROOT_CONTEXT
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    context: Context,
    fn: F,
    thisArg?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    const cause = causality.getStore() ?? NO_CAUSE
    return causality.run({ ...cause, trace: new ContextScope(context) }, () => fn.call(thisArg as never, ...args))
  }

  bind<T>(context: Context, target: T): T {
    if (typeof target !== 'function') return target
    const manager = this
    const bound = function (this: unknown, ...args: unknown[]): unknown {
      return manager.with(context, target as Callable, this, ...args)
    }
    Object.defineProperty(bound, 'length', { configurable: true, value: target.length })
    return bound as T
  }

  enable(): this {
    return this
  }
  disable(): this {
    return this
  }
}
