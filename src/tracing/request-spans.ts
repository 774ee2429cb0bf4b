import { createTraceState, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import { RandomIdGenerator, type Sampler, SamplingDecision } from '@opentelemetry/sdk-trace-node'
import { type Carrier, NO_CARRIER, spanIdOf, traceIdOf, tracestateOf } from '../causality/carrier.ts'
import type { RequestSpan, RequestStart, RequestTracing } from '../contracts/tracing.ts'
import { ATTR } from './attributes.ts'
import { remoteContext } from './scope.ts'
import { type RecordAttributes, RUNTIME_SCOPE, TEXT_MAX_LENGTH } from './span-record.ts'
import type { SpanWriter } from './span-writer.ts'

/** Methods that are named in spans; a client may invent any number of others. RFC 9110, and PATCH of RFC 5789. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'])

/** SERVER spans: one per request. Put together when it ends, so that a request that is not sampled costs its two ids. */
export class RequestSpans implements RequestTracing {
  readonly #writer: SpanWriter
  readonly #sampler: Sampler
  readonly #nowMs: () => number
  readonly #ids = new RandomIdGenerator()

  constructor(writer: SpanWriter, sampler: Sampler, nowMs: () => number) {
    this.#writer = writer
    this.#sampler = sampler
    this.#nowMs = nowMs
  }

  begin(start: RequestStart): RequestSpan {
    const parent = start.traceparent === '' ? NO_CARRIER : parentOf(start.traceparent, start.tracestate)
    const traceId = parent === NO_CARRIER ? this.#ids.generateTraceId() : traceIdOf(parent)
    const { decision } = this.#sampler.shouldSample(remoteContext(parent), traceId, 'http', SpanKind.SERVER, {}, [])
    const isSampled = decision === SamplingDecision.RECORD_AND_SAMPLED
    const carrier = `00-${traceId}-${this.#ids.generateSpanId()}-${isSampled ? '01' : '00'}${tracestateOf(parent)}`
    if (!isSampled) return { carrier, servedBy: -1, end: NOTHING }
    return new ServerSpan(this.#writer, this.#nowMs, carrier, parent, start)
  }
}

const NOTHING = (): void => {}

class ServerSpan implements RequestSpan {
  readonly carrier: Carrier
  servedBy = -1
  readonly #writer: SpanWriter
  readonly #nowMs: () => number
  readonly #parent: Carrier
  readonly #start: RequestStart
  readonly #startMs: number

  constructor(writer: SpanWriter, nowMs: () => number, carrier: Carrier, parent: Carrier, start: RequestStart) {
    this.#writer = writer
    this.#nowMs = nowMs
    this.carrier = carrier
    this.#parent = parent
    this.#start = start
    this.#startMs = nowMs()
  }

  end(status: number): void {
    const { method, route } = this.#start
    const isError = status >= 500 || status === 0
    const name = METHODS.has(method) ? method : 'HTTP'
    this.#writer.write({
      traceId: traceIdOf(this.carrier),
      spanId: spanIdOf(this.carrier),
      parentSpanId: spanIdOf(this.#parent),
      isParentRemote: this.#parent !== NO_CARRIER,
      tracestate: tracestateOf(this.carrier),
      name: route === '' ? name : `${name} ${route}`,
      kind: SpanKind.SERVER,
      startMs: this.#startMs,
      endMs: this.#nowMs(),
      attributes: this.#attributes(status),
      events: [],
      links: [],
      statusCode: isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET,
      statusMessage: '',
      scopeName: RUNTIME_SCOPE,
      scopeVersion: '',
      droppedAttributes: 0,
      droppedEvents: 0,
      droppedLinks: 0,
    })
  }

  #attributes(status: number): RecordAttributes {
    const { method, path, query, host, userAgent, requestId, route, plugin } = this.#start
    const isKnown = METHODS.has(method)
    const attributes: RecordAttributes = {
      [ATTR.HTTP_METHOD]: isKnown ? method : '_OTHER',
      [ATTR.URL_PATH]: cut(path),
      [ATTR.URL_SCHEME]: 'http',
      [ATTR.PROTOCOL_VERSION]: '1.1',
      [ATTR.REQUEST_ID]: requestId,
    }
    if (!isKnown) attributes[ATTR.HTTP_METHOD_ORIGINAL] = cut(method)
    if (query !== '') attributes[ATTR.URL_QUERY] = cut(withoutValues(query))
    if (host !== '') addServer(attributes, cut(host))
    if (userAgent !== '') attributes[ATTR.USER_AGENT] = cut(userAgent)
    if (route !== '') attributes[ATTR.HTTP_ROUTE] = route
    if (plugin !== '') attributes[ATTR.PLUGIN] = plugin
    if (this.servedBy >= 0) attributes[ATTR.LANE] = this.servedBy
    if (status > 0) attributes[ATTR.HTTP_STATUS] = status
    if (status >= 500) attributes[ATTR.ERROR_TYPE] = String(status)
    else if (status === 0) attributes[ATTR.ERROR_TYPE] = 'client_gone'
    return attributes
  }
}

const cut = (text: string): string => (text.length > TEXT_MAX_LENGTH ? text.slice(0, TEXT_MAX_LENGTH) : text)

/** Source: W3C Trace Context; a later version than 00 is read as one. */
function parentOf(traceparent: string, tracestate: string): Carrier {
  const parent = parseTraceParent(traceparent)
  if (parent === null) return NO_CARRIER
  const flags = (parent.traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'
  const state = tracestate === '' ? '' : createTraceState(tracestate).serialize()
  return `00-${parent.traceId}-${parent.spanId}-${flags}${state}`
}

/** Values of a query are data of the request, and data never appear in spans. */
function withoutValues(query: string): string {
  return query
    .split('&')
    .map((pair) => (pair.includes('=') ? `${pair.slice(0, pair.indexOf('='))}=REDACTED` : 'REDACTED'))
    .join('&')
}

function addServer(attributes: RecordAttributes, host: string): void {
  const match = /^(\[[^\]]+\]|[^:]*)(?::(\d{1,5}))?$/.exec(host)
  if (match === null) return
  attributes[ATTR.SERVER_ADDRESS] = match[1]!.replace(/^\[|\]$/g, '')
  if (match[2] !== undefined) attributes[ATTR.SERVER_PORT] = Number(match[2])
}
