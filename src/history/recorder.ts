// Records what happens in one thread for the history, and passes it on to the tracing.
import type {
  CausalContext,
  CodeTracing,
  DeliveryEvent,
  DeliveryFacts,
  DeliverySpan,
  DeliveryTracing,
  DescribeCall,
  OpenSpan,
  RecordingInit,
  SpanAttributes,
  ToolTracing,
  TraceContext,
  TraceScope,
  Work,
} from '../contracts/tracing.ts'
import { causality, NO_CAUSE } from '../core/causality/context.ts'
import type { Settings } from '../core/config/schema.ts'
import { CALLERS_WORK } from '../core/errors/catalogue.ts'
import { keepFrames } from '../core/errors/places.ts'
import { clockOf } from '../core/schedule/clock.ts'
import { withoutSecretStrings } from '../core/schemas/secret-fields.ts'
import { RecordWriter } from '../recording/ring.ts'
import { Keep } from './keep.ts'
import { OpenWork, WorkScope } from './open-work.ts'
import { Payloads } from './payloads.ts'
import type { HistoryEntry } from './store.ts'

/** Frames of a stack; V8's default is 10. */
const STACK_FRAMES = 16

/**
 * Records what the code of plugins does in one thread. It takes the place of the tracing and passes everything on to it, so that neither
 * the runtime nor the tracing knows of it.
 */
export class ThreadHistory implements CodeTracing, ToolTracing {
  readonly thread: 'primary' | number
  readonly writer: RecordWriter<HistoryEntry>
  readonly keep: Keep
  /** Null where they are not kept. */
  readonly payloads: Payloads | null
  readonly nowMs: () => number
  readonly #inner: CodeTracing | null
  readonly #innerTools: ToolTracing | null

  /** @param inner makes spans for OpenTelemetry; null while tracing is off */
  constructor(
    thread: 'primary' | number,
    { historySample, nodeEnv, domainsDir }: Pick<Settings, 'historySample' | 'nodeEnv' | 'domainsDir'>,
    init: RecordingInit,
    inner: (CodeTracing & { tools: ToolTracing }) | null,
  ) {
    this.writer = new RecordWriter(init.ring, (entry) => withoutSecretStrings(JSON.stringify(entry)))
    this.keep = new Keep(historySample)
    this.payloads = nodeEnv === 'production' ? null : new Payloads(domainsDir)
    this.nowMs = clockOf(init.clock)
    this.thread = thread
    this.#inner = inner
    this.#innerTools = inner?.tools ?? null
    // It adds frames between a plugin and its tools: the plugin's own must still be among those that a stack has.
    keepFrames(STACK_FRAMES)
  }

  get tools(): ToolTracing {
    return this
  }

  scope(traceContext: TraceContext): TraceScope {
    return this.#inner?.scope(traceContext) ?? { traceContext }
  }

  open(traceContext: TraceContext, name: string, attributes: SpanAttributes, work: Work): OpenSpan {
    const inner = this.#inner?.open(traceContext, name, attributes, work) ?? null
    this.payloads?.prepare()
    return new OpenWork(this, inner, name, attributes['heddle.plugin'] as string, work)
  }

  run(
    tool: string,
    method: string,
    describe: DescribeCall | undefined,
    args: readonly unknown[],
    call: () => unknown,
  ): unknown {
    const inner = this.#innerTools
    const scope = (causality.getStore() ?? NO_CAUSE).trace
    if (!(scope instanceof WorkScope)) return inner === null ? call() : inner.run(tool, method, describe, args, call)
    const { work, parent } = scope
    const index = work.begin(parent, tool, method, describe, args)
    if (index < 0) return inner === null ? call() : inner.run(tool, method, describe, args, call)
    // Calls in its function belong below it.
    const isAround = CALLERS_WORK.has(`${tool}.${method}`)
    const inside = isAround ? () => below(work, index, call) : call
    let result: unknown
    try {
      result = inner === null ? inside() : inner.run(tool, method, describe, args, inside)
    } catch (thrown) {
      work.failed(index, thrown)
      throw thrown
    }
    // Not chained: the caller gets the tool's own promise.
    if (result instanceof Promise) {
      result.then(
        (value) => work.ended(index, value),
        (thrown) => work.failed(index, thrown),
      )
    } else work.ended(index, result)
    return result
  }
}

/** Calls a function whose own calls belong below a call. */
function below(work: OpenWork, index: number, call: () => unknown): unknown {
  const cause: CausalContext = causality.getStore() ?? NO_CAUSE
  // With tracing on, the scope is by now that of the call's span.
  const inner = cause.trace instanceof WorkScope ? cause.trace.inner : cause.trace
  return causality.run({ ...cause, trace: new WorkScope(work, index, inner) }, call)
}

/** Records the deliveries of events with their retries. It takes the place of their tracing, and passes everything on to it. */
export class DeliveryHistory implements DeliveryTracing {
  readonly nowMs: () => number
  readonly #inner: DeliveryTracing | null
  readonly #own: ThreadHistory

  constructor(own: ThreadHistory, inner: DeliveryTracing | null) {
    this.#own = own
    this.#inner = inner
    this.nowMs = own.nowMs
  }

  scope(traceContext: TraceContext): TraceScope {
    return this.#own.scope(traceContext)
  }

  begin(parent: TraceContext): DeliverySpan {
    const inner = this.#inner?.begin(parent) ?? null
    if (inner !== null) return inner
    // The tracing does not want it: its subscriber belongs below the span that published.
    const own: OwnSpan = { isOwn: true, parent, traceContext: parent, startMs: this.nowMs(), events: [] }
    return own
  }

  note(span: DeliverySpan, event: DeliveryEvent): void {
    if (isOwn(span)) span.events.push(event)
    else this.#inner!.note(span, event)
  }

  end(span: DeliverySpan, facts: DeliveryFacts, isGivenUp: boolean): void {
    if (!isOwn(span)) this.#inner!.end(span, facts, isGivenUp)
    const { keep, writer, nowMs } = this.#own
    const { event, eventId, group, requestId } = facts
    if (!keep.isAll && span.events.length === 0 && !isGivenUp) return
    writer.write(() => ({
      type: 'delivery',
      requestId,
      eventId,
      event,
      group,
      atMs: span.startMs,
      ms: nowMs() - span.startMs,
      isGivenUp,
      steps: span.events.slice(0, STEPS_MAX),
    }))
  }
}

/** Steps of one delivery that are kept. */
const STEPS_MAX = 50

/** Plain data: where an attempt has failed, it goes to the primary, which ends it. */
interface OwnSpan extends DeliverySpan {
  readonly isOwn: true
}

const isOwn = (span: DeliverySpan): span is OwnSpan => 'isOwn' in span
