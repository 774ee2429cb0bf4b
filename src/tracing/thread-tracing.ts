import { SpanKind, type Tracer } from '@opentelemetry/api'
import { NodeTracerProvider, ParentBasedSampler } from '@opentelemetry/sdk-trace-node'
import { type Carrier, isSampled, NO_CARRIER } from '../causality/carrier.ts'
import type { Settings } from '../config/schema.ts'
import type {
  CodeTracing,
  DeliveryTracing,
  OpenSpan,
  SpanAttributes,
  ToolTracing,
  TraceScope,
} from '../contracts/tracing.ts'
import { type ClockAnchor, clockOf } from './clock.ts'
import { CausalContextManager } from './context-manager.ts'
import { DeliverySpans } from './delivery-spans.ts'
import { RecordingProcessor } from './recording-processor.ts'
import { samplerOf } from './sampler.ts'
import { ContextScope, carrierOfSpan, PassingScope, remoteContext, SpanScope } from './scope.ts'
import { RUNTIME_SCOPE } from './span-record.ts'
import { SpanWriter } from './span-writer.ts'
import { ToolSpans } from './tool-spans.ts'

/** Longer texts in attributes are cut, a statement for example. Characters. */
const ATTRIBUTE_MAX_LENGTH = 4096

const INTERNAL = { kind: SpanKind.INTERNAL }

/** What a thread needs to make spans; it crosses from the primary. */
export interface TracingInit {
  /** Where it leaves them. */
  readonly ring: SharedArrayBuffer
  readonly clock: ClockAnchor
}

/** All that makes spans in one thread. The SDK makes those around code; how they leave the thread is the writer's affair. */
export class ThreadTracing implements CodeTracing {
  readonly tools: ToolTracing
  readonly deliveries: DeliveryTracing
  readonly writer: SpanWriter
  readonly nowMs: () => number
  readonly #tracer: Tracer

  constructor(settings: Settings, init: TracingInit) {
    this.writer = new SpanWriter(init.ring)
    this.nowMs = clockOf(init.clock)
    const sampler = samplerOf(settings)
    const provider = new NodeTracerProvider({
      // What is under a span follows it, whatever is asked for where a trace begins.
      sampler: new ParentBasedSampler({ root: sampler }),
      spanProcessors: [new RecordingProcessor(this.writer, this.nowMs)],
      spanLimits: { attributeValueLengthLimit: ATTRIBUTE_MAX_LENGTH },
    })
    provider.register({ contextManager: new CausalContextManager() })
    this.#tracer = provider.getTracer(RUNTIME_SCOPE)
    this.tools = new ToolSpans(this.#tracer)
    this.deliveries = new DeliverySpans(this.writer, sampler, this.nowMs)
  }

  scope(carrier: Carrier): TraceScope {
    return new ContextScope(remoteContext(carrier))
  }

  open(carrier: Carrier, name: string, attributes: SpanAttributes): OpenSpan {
    if (carrier !== NO_CARRIER && !isSampled(carrier)) return new PassingScope(carrier)
    const parent = remoteContext(carrier)
    const span = this.#tracer.startSpan(name, INTERNAL, parent)
    if (!span.isRecording()) return new PassingScope(carrierOfSpan(span.spanContext()))
    // Not given to `startSpan`, which copies them twice more: no sampler asks for them.
    span.setAttributes(attributes)
    return new SpanScope(span, parent)
  }
}
