import type { OpenSpan, SpanAttributes } from '../../contracts/tracing.ts'
import { type Carrier, isSampled, NO_CARRIER, traceIdOf, tracestateOf } from '../../core/causality/carrier.ts'
import { randomHex } from '../../core/causality/ids.ts'
import type { SpanWriter } from '../encoding/span-writer.ts'
import { RuntimeSpan } from './runtime-span.ts'
import type { TraceSampler } from './sampler.ts'
import { PassingScope, type ThreadScope } from './scope.ts'

/** A span of the runtime, or the place of one that is not sampled. */
export type MadeSpan = OpenSpan & ThreadScope

/** Begins the runtime's spans around code. What is under a span follows it; where a trace begins the sampler is asked. */
export class SpanMaker {
  readonly #writer: SpanWriter
  readonly #sampler: TraceSampler
  readonly #nowMs: () => number

  constructor(writer: SpanWriter, sampler: TraceSampler, nowMs: () => number) {
    this.#writer = writer
    this.#sampler = sampler
    this.#nowMs = nowMs
  }

  /** Under a place of this thread; null begins a trace. */
  open(around: ThreadScope | null, name: string, kind: number, attributes: SpanAttributes): MadeSpan {
    return this.#open(around?.carrier ?? NO_CARRIER, around, name, kind, attributes)
  }

  /** Under a span of another thread or process; an empty carrier begins a trace. */
  openUnder(parent: Carrier, name: string, kind: number, attributes: SpanAttributes): MadeSpan {
    if (parent !== NO_CARRIER && !isSampled(parent)) return new PassingScope(parent)
    return this.#open(parent, null, name, kind, attributes)
  }

  #open(parent: Carrier, around: ThreadScope | null, name: string, kind: number, attributes: SpanAttributes): MadeSpan {
    let carrier: Carrier
    if (parent === NO_CARRIER) {
      const traceId = randomHex(16)
      const isSampledHere = this.#sampler.samples(NO_CARRIER, traceId)
      carrier = `00-${traceId}-${randomHex(8)}-0${isSampledHere ? 1 : 0}`
      if (!isSampledHere) return new PassingScope(carrier)
    } else carrier = `00-${traceIdOf(parent)}-${randomHex(8)}-01${tracestateOf(parent)}`
    return new RuntimeSpan(this.#writer, this.#nowMs, carrier, parent, around, name, kind, attributes)
  }
}
