// Which traces are recorded.
import type { Context } from '@opentelemetry/api'
import { type Sampler, SamplingDecision, type SamplingResult } from '@opentelemetry/sdk-trace-node'
import type { TraceContext } from '../contracts/tracing.ts'
import { isSampled, NO_TRACE_CONTEXT } from '../core/causality/context.ts'
import { randomHex, randomWord } from '../core/causality/ids.ts'
import type { Settings } from '../core/config/schema.ts'

const YES: SamplingResult = { decision: SamplingDecision.RECORD_AND_SAMPLED }
const NO: SamplingResult = { decision: SamplingDecision.NOT_RECORD }
const WORD_MAX = 0xffff_ffff

/**
 * The sampler of OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG. It decides by ids alone and with the same outcome as the SDK's samplers,
 * but makes no context and no result object for each request.
 */
export class TraceSampler implements Sampler {
  readonly #followsParent: boolean
  /** A trace is sampled when its word, of 2^32, is below this. */
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

  /** Makes the id of a trace that begins here; empty when it is not sampled, which is decided by one number: nearly all requests stop there. */
  begin(): string {
    if (this.#bound > WORD_MAX) return randomHex(16)
    if (this.#bound === 0) return ''
    const word = randomWord()
    return word < this.#bound ? traceIdWith(word) : ''
  }

  /** Makes the id of a trace that is not sampled, neither here nor by any other process with the same ratio. */
  unsampled(): string {
    const others = WORD_MAX + 1 - this.#bound
    return traceIdWith(this.#bound + Math.floor(randomWord() * (others / (WORD_MAX + 1))))
  }

  /** Called by the SDK, and only where a trace begins. */
  shouldSample(_: Context, traceId: string): SamplingResult {
    return this.samples(NO_TRACE_CONTEXT, traceId) ? YES : NO
  }

  toString(): string {
    return `TraceSampler{${this.#bound}}`
  }
}

/** The four words of an id, combined by XOR like in the SDK's TraceIdRatioBasedSampler, so that all processes with the same ratio agree. */
function wordOf(traceId: string): number {
  let word = 0
  for (let n = 0; n < 8; n++) {
    const nibbles = digit(traceId, n) ^ digit(traceId, n + 8) ^ digit(traceId, n + 16) ^ digit(traceId, n + 24)
    word = word * 16 + nibbles
  }
  return word
}

/** A random id with this word. */
function traceIdWith(word: number): string {
  const [first, second, third] = [randomWord(), randomWord(), randomWord()]
  return [first, second, third, word ^ first ^ second ^ third].map(digitsOf).join('')
}

const digitsOf = (word: number): string => (word >>> 0).toString(16).padStart(8, '0')

function digit(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return code < 58 ? code - 48 : code - 87
}
