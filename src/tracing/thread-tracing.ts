/** Everything that makes spans in one thread, by the SDK: the runtime's own around code, and those of plugins. */
import {
  type Context,
  type Exception,
  type HrTime,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  type TimeInput,
  type Tracer,
} from '@opentelemetry/api'
import {
  NodeTracerProvider,
  ParentBasedSampler,
  type ReadableSpan,
  type Span,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-node'
import type {
  CallDetails,
  CausalContext,
  CodeTracing,
  DeliveryTracing,
  DescribeCall,
  OpenSpan,
  RecordingInit,
  SpanAttributes,
  ToolTracing,
  TraceContext,
  TraceScope,
} from '../contracts/tracing.ts'
import { causality, isSampled, NO_CAUSE, NO_TRACE_CONTEXT, UNNAMED_TRACE } from '../core/causality/context.ts'
import type { Settings } from '../core/config/schema.ts'
import { clock, clockOf } from '../core/schedule/clock.ts'
import { RecordWriter } from '../recording/ring.ts'
import { ATTR, exceptionOf } from './attributes.ts'
import { DeliverySpans } from './delivery-spans.ts'
import { followOutgoingRequests } from './outgoing-requests.ts'
import { TraceSampler } from './sampler.ts'
import {
  CausalContextManager,
  ContextScope,
  type MadeSpan,
  PassingScope,
  remoteContext,
  type SpanMaker,
  SpanScope,
  type ThreadScope,
  traceContextOfSpan,
} from './scope.ts'
import {
  ATTRIBUTE_MAX_LENGTH,
  hrTimeOf,
  RUNTIME_SCOPE,
  recordOf,
  type SpanSource,
  type SpanWriter,
} from './span-record.ts'

/** What all copies of OpenTelemetry's API in this thread have registered, as they keep it from version 1 on. */
const registered = (): object => (globalThis as Record<symbol, object>)[Symbol.for('opentelemetry.js.api.1')]!

export class ThreadTracing implements CodeTracing, SpanSource {
  readonly tools: ToolTracing
  readonly deliveries: DeliveryTracing
  readonly writer: SpanWriter
  readonly nowMs: () => number
  readonly sampler: TraceSampler
  readonly #tracer: Tracer

  constructor(settings: Settings, init: RecordingInit) {
    this.writer = new RecordWriter(init.ring)
    this.nowMs = clockOf(init.clock)
    this.sampler = new TraceSampler(settings)
    const provider = new NodeTracerProvider({
      // A child follows its parent. The configured sampler decides only where a trace begins.
      sampler: new ParentBasedSampler({ root: this.sampler }),
      spanProcessors: [new Recording(this.writer, this.nowMs)],
      spanLimits: { attributeValueLengthLimit: ATTRIBUTE_MAX_LENGTH },
    })
    const contextManager = new CausalContextManager()
    provider.register({ contextManager })
    // An agent that is preloaded has registered its own, maybe by another copy of the API. With this one what it sees is part of the trace, and still
    // goes where the agent sends it.
    Object.assign(registered(), { context: contextManager, trace: provider })
    this.#tracer = provider.getTracer(RUNTIME_SCOPE)
    this.tools = new ToolSpans(this)
    followOutgoingRequests(this)
    this.deliveries = new DeliverySpans(this)
  }

  scope(traceContext: TraceContext): TraceScope {
    if (traceContext === UNNAMED_TRACE) return new PassingScope(traceContext, this.sampler)
    return new ContextScope(remoteContext(traceContext))
  }

  open(traceContext: TraceContext, name: string, attributes: SpanAttributes): OpenSpan {
    if (traceContext !== NO_TRACE_CONTEXT && !isSampled(traceContext)) {
      return new PassingScope(traceContext, this.sampler)
    }
    return this.#begin(traceContext, remoteContext(traceContext), name, SpanKind.INTERNAL, attributes)
  }

  /** Begins a span below a scope of this thread; null begins a trace. */
  openIn(around: ThreadScope | null, name: string, kind: SpanKind, attributes: SpanAttributes): MadeSpan {
    const parent = around?.context ?? ROOT_CONTEXT
    return this.#begin(around?.traceContext ?? NO_TRACE_CONTEXT, parent, name, kind, attributes)
  }

  #begin(parent: TraceContext, context: Context, name: string, kind: SpanKind, attributes: SpanAttributes): MadeSpan {
    const span = this.#tracer.startSpan(name, { kind, attributes }, context)
    if (span.isRecording()) return new SpanScope(span, context)
    const spanContext = span.spanContext()
    // A plugin may have suppressed tracing in its context.
    return new PassingScope(isSpanContextValid(spanContext) ? traceContextOfSpan(spanContext) : parent, this.sampler)
  }
}

/** What the SDK keeps in fields of its own. If they ever go away, spans have the SDK's times. */
interface Started {
  startTime: HrTime
  readonly _startTimeProvided?: boolean
  readonly _performanceStartTime?: number
}

/** Writes each span into shared memory as soon as it has ended. */
export class Recording implements SpanProcessor {
  readonly #writer: SpanWriter
  readonly #originMs: number

  constructor(writer: SpanWriter, nowMs: () => number) {
    this.#writer = writer
    this.#originMs = nowMs() - clock.now()
  }

  /** The SDK begins in whole milliseconds, so a child could seem older than its parent: here it begins by the clock of all threads. */
  onStart(span: Span): void {
    const started = span as unknown as Started
    const { _startTimeProvided: isGiven, _performanceStartTime: atMs } = started
    if (isGiven === false && atMs !== undefined) started.startTime = hrTimeOf(this.#originMs + atMs)
    span.recordException = recordException
  }

  onEnd(span: ReadableSpan): void {
    this.#writer.write(() => recordOf(span))
  }

  forceFlush(): Promise<void> {
    return Promise.resolve()
  }
  shutdown(): Promise<void> {
    return Promise.resolve()
  }
}

/** The SDK's own would show the message of an error of the runtime or of a database, which may quote values. */
function recordException(this: Span, exception: Exception, time?: TimeInput): void {
  this.addEvent('exception', exceptionOf(exception).attributes, time)
}

const KINDS = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT, producer: SpanKind.PRODUCER } as const

/** The part that all spans of one tool's method have in common. */
interface Call {
  readonly name: string
  readonly attributes: SpanAttributes
}

/** Makes a span around each tool call that belongs to a trace. A call outside of all traces, such as a registration, has none. */
class ToolSpans implements ToolTracing {
  readonly #spans: SpanMaker
  readonly #calls = new Map<string, Map<string, Call>>()

  constructor(spans: SpanMaker) {
    this.#spans = spans
  }

  run(
    tool: string,
    method: string,
    describe: DescribeCall | undefined,
    args: readonly unknown[],
    call: () => unknown,
  ): unknown {
    const cause = causality.getStore() ?? NO_CAUSE
    const parent = cause.trace as ThreadScope | null
    if (parent !== null && !parent.isSampled) return call()
    const details = describe?.(method, args)
    // Outside of all traces an event begins one: otherwise each of its deliveries would begin one.
    if (parent === null && details?.kind !== 'producer') return call()
    const { name, attributes } = this.#callOf(tool, method)
    const kind = KINDS[details?.kind ?? 'internal']
    const more = details?.attributes
    const scope = this.#spans.openIn(parent, name, kind, more === undefined ? attributes : { ...attributes, ...more })
    if (scope instanceof SpanScope) return runIn(cause, scope, details, call)
    return causality.run({ ...cause, trace: scope }, call)
  }

  #callOf(tool: string, method: string): Call {
    const known = this.#calls.get(tool)?.get(method)
    if (known !== undefined) return known
    const call = { name: `${tool}.${method}`, attributes: { [ATTR.TOOL]: tool, [ATTR.METHOD]: method } }
    this.#calls.set(tool, (this.#calls.get(tool) ?? new Map<string, Call>()).set(method, call))
    return call
  }
}

function runIn(cause: CausalContext, scope: SpanScope, details: CallDetails | undefined, call: () => unknown): unknown {
  let result: unknown
  try {
    result = causality.run({ ...cause, trace: scope }, call)
  } catch (thrown) {
    scope.fail(thrown)
    throw thrown
  }
  const ended = (outcome: unknown): void => {
    const more = details?.ofResult?.(outcome)
    if (more !== undefined) scope.span.setAttributes(more)
    scope.end()
  }
  // Not chained: the caller gets the tool's own promise, which settles no later than without tracing.
  if (result instanceof Promise) result.then(ended, (thrown) => scope.fail(thrown))
  else ended(result)
  return result
}
