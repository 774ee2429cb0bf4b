import { SpanKind } from '@opentelemetry/api'
import { NodeTracerProvider, ParentBasedSampler } from '@opentelemetry/sdk-trace-node'
import type {
  CodeTracing,
  DeliveryTracing,
  OpenSpan,
  SpanAttributes,
  ToolTracing,
  TraceScope,
  TracingInit,
  Work,
} from '../../contracts/tracing.ts'
import { type TraceContext, UNNAMED_TRACE } from '../../core/causality/trace-context.ts'
import type { Settings } from '../../core/config/schema.ts'
import { clockOf } from '../../core/schedule/process-clock.ts'
import { ATTRIBUTE_MAX_LENGTH } from '../encoding/otlp.ts'
import { SpanWriter } from '../encoding/span-writer.ts'
import { CausalContextManager } from './context-manager.ts'
import { DeliverySpans } from './delivery-spans.ts'
import { followOutgoingRequests } from './outgoing-requests.ts'
import { RecordingProcessor } from './recording-processor.ts'
import { TraceSampler } from './sampler.ts'
import { ContextScope, PassingScope, remoteContext } from './scope.ts'
import { SpanMaker } from './span-maker.ts'
import { ToolSpans } from './tool-spans.ts'

/** Everything that makes spans in one thread: the runtime's own ones, and through the SDK those of plugins. The writer takes them out of the thread. */
export class ThreadTracing implements CodeTracing {
  readonly tools: ToolTracing
  readonly deliveries: DeliveryTracing
  readonly writer: SpanWriter
  readonly nowMs: () => number
  readonly #sampler: TraceSampler
  readonly #spans: SpanMaker

  constructor(settings: Settings, init: TracingInit) {
    this.writer = new SpanWriter(init.ring, settings.otelExporterOtlpEndpoint === undefined)
    this.nowMs = clockOf(init.clock)
    const sampler = new TraceSampler(settings)
    this.#sampler = sampler
    const provider = new NodeTracerProvider({
      // A child follows its parent. The configured sampler decides only where a trace begins.
      sampler: new ParentBasedSampler({ root: sampler }),
      spanProcessors: [new RecordingProcessor(this.writer, this.nowMs)],
      spanLimits: { attributeValueLengthLimit: ATTRIBUTE_MAX_LENGTH },
    })
    provider.register({ contextManager: new CausalContextManager() })
    this.#spans = new SpanMaker(this.writer, sampler, this.nowMs)
    this.tools = new ToolSpans(this.#spans)
    followOutgoingRequests(this.#spans)
    this.deliveries = new DeliverySpans(this.writer, sampler, this.nowMs)
  }

  scope(traceContext: TraceContext): TraceScope {
    if (traceContext === UNNAMED_TRACE) return new PassingScope(traceContext, this.#sampler)
    return new ContextScope(remoteContext(traceContext))
  }

  open(traceContext: TraceContext, name: string, attributes: SpanAttributes, { kind }: Work): OpenSpan {
    return this.#spans.openUnder(traceContext, name, SpanKind.INTERNAL, attributes, kind === 'request')
  }
}
