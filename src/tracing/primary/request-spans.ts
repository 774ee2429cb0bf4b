import { TraceFlags } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import type { RequestSpan, RequestStart, RequestTracing, StartOf } from '../../contracts/tracing.ts'
import { randomHex } from '../../core/causality/ids.ts'
import {
  NO_TRACE_CONTEXT,
  type TraceContext,
  traceIdOf,
  tracestateFrom,
  tracestateOf,
  UNNAMED_TRACE,
} from '../../core/causality/trace-context.ts'
import type { SpanWriter } from '../encoding/span-writer.ts'
import type { TraceSampler } from '../spans/sampler.ts'
import { requestRecord } from './request-attributes.ts'
import { RequestFields } from './request-fields.ts'

/** SERVER spans: one per request. A span is built when the request ends, so a request that is not sampled costs a number. */
export class RequestSpans implements RequestTracing {
  readonly #writer: SpanWriter
  readonly #sampler: TraceSampler
  readonly #nowMs: () => number
  readonly #fields = new RequestFields()

  constructor(writer: SpanWriter, sampler: TraceSampler, nowMs: () => number) {
    this.#writer = writer
    this.#sampler = sampler
    this.#nowMs = nowMs
  }

  begin(traceparent: string, tracestate: string, start: StartOf): RequestSpan | TraceContext {
    const parent = traceparent === '' ? NO_TRACE_CONTEXT : parentOf(traceparent, tracestate)
    if (parent === NO_TRACE_CONTEXT) {
      const traceId = this.#sampler.begin()
      return traceId === '' ? UNNAMED_TRACE : this.#open(`00-${traceId}-${randomHex(8)}-01`, parent, start)
    }
    const traceId = traceIdOf(parent)
    const isSampled = this.#sampler.samples(parent, traceId)
    const traceContext = `00-${traceId}-${randomHex(8)}-0${isSampled ? 1 : 0}${tracestateOf(parent)}`
    return isSampled ? this.#open(traceContext, parent, start) : traceContext
  }

  #open(traceContext: TraceContext, parent: TraceContext, start: StartOf): RequestSpan {
    return new ServerSpan(this.#writer, this.#fields, this.#nowMs, traceContext, parent, start(true))
  }
}

class ServerSpan implements RequestSpan {
  readonly traceContext: TraceContext
  servedBy = -1
  readonly startMs: number
  readonly #writer: SpanWriter
  readonly #fields: RequestFields
  readonly #nowMs: () => number
  readonly parent: TraceContext
  readonly #start: RequestStart

  constructor(
    writer: SpanWriter,
    fields: RequestFields,
    nowMs: () => number,
    traceContext: TraceContext,
    parent: TraceContext,
    start: RequestStart,
  ) {
    this.#writer = writer
    this.#fields = fields
    this.#nowMs = nowMs
    this.traceContext = traceContext
    this.parent = parent
    this.#start = start
    this.startMs = nowMs()
  }

  get isParentRemote(): boolean {
    return this.parent !== NO_TRACE_CONTEXT
  }
  get endMs(): number {
    return this.#nowMs()
  }

  end(status: number): void {
    if (this.#writer.isForConsole) {
      return this.#writer.write(requestRecord(this, this.#start, status, this.servedBy))
    }
    this.#fields.write(this.#writer, this, this.#start, status, this.servedBy)
  }
}

/** Source: W3C Trace Context; later versions are read as version 00. */
function parentOf(traceparent: string, tracestate: string): TraceContext {
  const parent = parseTraceParent(traceparent)
  if (parent === null) return NO_TRACE_CONTEXT
  const flags = (parent.traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'
  return `00-${parent.traceId}-${parent.spanId}-${flags}${tracestateFrom(tracestate)}`
}
