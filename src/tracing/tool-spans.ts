import { ROOT_CONTEXT, type Span, SpanKind, type Tracer } from '@opentelemetry/api'
import { type CausalContext, causality } from '../causality/context.ts'
import type { CallDetails, DescribeCall, ToolTracing } from '../contracts/tracing.ts'
import { ATTR } from './attributes.ts'
import { carrierOfSpan, PassingScope, SpanScope, type ThreadScope } from './scope.ts'

const KINDS = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT, producer: SpanKind.PRODUCER } as const

/** A span around each tool call that belongs to a trace: one outside of all, such as a registration, has none. */
export class ToolSpans implements ToolTracing {
  readonly #tracer: Tracer

  constructor(tracer: Tracer) {
    this.#tracer = tracer
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
    if (parent !== null && !parent.isRecording) return call()
    const details = describe?.(method, args)
    // Outside of all traces an event begins one: its deliveries would else begin one each.
    if (parent === null && details?.kind !== 'producer') return call()
    const context = parent === null ? ROOT_CONTEXT : parent.context
    const span = this.#tracer.startSpan(`${tool}.${method}`, { kind: KINDS[details?.kind ?? 'internal'] }, context)
    if (span.isRecording()) {
      span.setAttributes({ [ATTR.TOOL]: tool, [ATTR.METHOD]: method, ...details?.attributes })
      return runIn(cause, new SpanScope(span, context), span, details, call)
    }
    const { eventId, requestId } = cause
    return causality.run({ eventId, requestId, trace: new PassingScope(carrierOfSpan(span.spanContext())) }, call)
  }
}

const NO_CAUSE: CausalContext = { eventId: null, requestId: null, trace: null }

function runIn(
  { eventId, requestId }: CausalContext,
  scope: SpanScope,
  span: Span,
  details: CallDetails | undefined,
  call: () => unknown,
): unknown {
  let result: unknown
  try {
    result = causality.run({ eventId, requestId, trace: scope }, call)
  } catch (thrown) {
    scope.fail(thrown)
    throw thrown
  }
  const ended = (outcome: unknown): void => {
    const more = details?.ofResult?.(outcome)
    if (more !== undefined) span.setAttributes(more)
    scope.end()
  }
  // A side branch: the caller gets the tool's own promise, settled no later than without us.
  if (result instanceof Promise) result.then(ended, (thrown) => scope.fail(thrown))
  else ended(result)
  return result
}
