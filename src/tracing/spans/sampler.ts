import type { Context } from '@opentelemetry/api'
import { type Sampler, SamplingDecision, type SamplingResult } from '@opentelemetry/sdk-trace-node'
import { isSampled, NO_TRACE_CONTEXT, type TraceContext } from '../../core/causality/trace-context.ts'
import type { Settings } from '../../core/config/schema.ts'

const YES: SamplingResult = { decision: SamplingDecision.RECORD_AND_SAMPLED }
const NO: SamplingResult = { decision: SamplingDecision.NOT_RECORD }
const WORD_MAX = 0xffff_ffff

/**
 * What OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG ask for. It decides by ids alone, like the SDK's samplers and with the same outcome,
 * without making a context and a result for each request.
 */
export class TraceSampler implements Sampler {
  readonly #followsParent: boolean
  /** Traces below are sampled: of 2^32. */
  readonly #bound: number

  constructor({
    otelTracesSampler,
    otelTracesSamplerArg,
  }: Pick<Settings, 'otelTracesSampler' | 'otelTracesSamplerArg'>) {
    this.#followsParent = otelTracesSampler.startsWith('parentbased_')
    const ratio = otelTracesSampler.endsWith('_off')
      ? 0
      : otelTracesSampler.endsWith('_on')
        ? 1
        : Math.min(1, Math.max(0, otelTracesSamplerArg))
    this.#bound = ratio === 1 ? WORD_MAX + 1 : Math.floor(ratio * WORD_MAX)
  }

  /** @param parent empty: the trace begins here */
  samples(parent: TraceContext, traceId: string): boolean {
    if (this.#followsParent && parent !== NO_TRACE_CONTEXT) return isSampled(parent)
    if (this.#bound === 0) return false
    return this.#bound > WORD_MAX || wordOf(traceId) < this.#bound
  }

  /** What the SDK asks, and it asks only where a trace begins. */
  shouldSample(_: Context, traceId: string): SamplingResult {
    return this.samples(NO_TRACE_CONTEXT, traceId) ? YES : NO
  }

  toString(): string {
    return `TraceSampler{${this.#bound}}`
  }
}

/** The four words of an id, folded into one. Source: the SDK's TraceIdRatioBasedSampler, so that processes which both ask for a ratio agree. */
function wordOf(traceId: string): number {
  let word = 0
  for (let n = 0; n < 8; n++) {
    const nibbles = digit(traceId, n) ^ digit(traceId, n + 8) ^ digit(traceId, n + 16) ^ digit(traceId, n + 24)
    word = word * 16 + nibbles
  }
  return word
}

function digit(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return code < 58 ? code - 48 : code - 87
}
