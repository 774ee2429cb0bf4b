import { createTraceState, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import { type Sampler, SamplingDecision } from '@opentelemetry/sdk-trace-node'
import { type Carrier, NO_CARRIER, spanIdOf, traceIdOf, tracestateOf } from '../causality/carrier.ts'
import { randomHex } from '../causality/ids.ts'
import type { RequestSpan, RequestStart, RequestTracing } from '../contracts/tracing.ts'
import { RequestTexts } from './request-texts.ts'
import { remoteContext } from './scope.ts'
import { quoted, RUNTIME_SCOPE } from './span-record.ts'
import type { SpanWriter } from './span-writer.ts'

/** SERVER spans: one per request. Put together when it ends, so that a request that is not sampled costs its two ids. */
export class RequestSpans implements RequestTracing {
  readonly #writer: SpanWriter
  readonly #sampler: Sampler
  readonly #nowMs: () => number
  readonly #texts = new RequestTexts()

  constructor(writer: SpanWriter, sampler: Sampler, nowMs: () => number) {
    this.#writer = writer
    this.#sampler = sampler
    this.#nowMs = nowMs
  }

  begin(traceparent: string, tracestate: string, start: () => RequestStart): RequestSpan {
    const parent = traceparent === '' ? NO_CARRIER : parentOf(traceparent, tracestate)
    const traceId = parent === NO_CARRIER ? randomHex(16) : traceIdOf(parent)
    const { decision } = this.#sampler.shouldSample(remoteContext(parent), traceId, 'http', SpanKind.SERVER, {}, [])
    const spanId = randomHex(8)
    if (decision !== SamplingDecision.RECORD_AND_SAMPLED) {
      return new UnsampledRequest(`00-${traceId}-${spanId}-00${tracestateOf(parent)}`)
    }
    const carrier = `00-${traceId}-${spanId}-01${tracestateOf(parent)}`
    return new ServerSpan(this.#writer, this.#texts, this.#nowMs, carrier, parent, start())
  }
}

class UnsampledRequest implements RequestSpan {
  readonly carrier: Carrier
  servedBy = -1

  constructor(carrier: Carrier) {
    this.carrier = carrier
  }

  end(): void {}
}

class ServerSpan implements RequestSpan {
  readonly carrier: Carrier
  servedBy = -1
  readonly #writer: SpanWriter
  readonly #texts: RequestTexts
  readonly #nowMs: () => number
  readonly #parent: Carrier
  readonly #start: RequestStart
  readonly #startMs: number

  constructor(
    writer: SpanWriter,
    texts: RequestTexts,
    nowMs: () => number,
    carrier: Carrier,
    parent: Carrier,
    start: RequestStart,
  ) {
    this.#writer = writer
    this.#texts = texts
    this.#nowMs = nowMs
    this.carrier = carrier
    this.#parent = parent
    this.#start = start
    this.#startMs = nowMs()
  }

  end(status: number): void {
    if (!this.#writer.hasRoom) return this.#writer.lose()
    const { carrier, servedBy } = this
    const parent = this.#parent
    const isError = status >= 500 || status === 0
    // As `encodeSpan` has it, put together by hand: it is the most frequent span of all.
    this.#writer.writeText(
      `["${traceIdOf(carrier)}","${spanIdOf(carrier)}","${spanIdOf(parent)}",${parent === NO_CARRIER ? 0 : 1},` +
        `${quoted(tracestateOf(carrier))},${this.#texts.nameOf(this.#start)},${SpanKind.SERVER},${this.#startMs},${this.#nowMs()},` +
        `{${this.#texts.attributesOf(this.#start, status, servedBy)}},[],[],` +
        `${isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET},"","${RUNTIME_SCOPE}","",0,0,0]`,
    )
  }
}

/** Source: W3C Trace Context; a later version than 00 is read as one. */
function parentOf(traceparent: string, tracestate: string): Carrier {
  const parent = parseTraceParent(traceparent)
  if (parent === null) return NO_CARRIER
  const flags = (parent.traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'
  const state = tracestate === '' ? '' : createTraceState(tracestate).serialize()
  return `00-${parent.traceId}-${parent.spanId}-${flags}${state}`
}
