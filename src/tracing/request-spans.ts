/** SERVER spans, in the primary: one per request. A span is built when the request ends, so a request that is not sampled costs a number. */
import { SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import type { RequestSpan, RequestStart, RequestTracing, SpanAttributes, TraceContext } from '../contracts/tracing.ts'
import { NO_TRACE_CONTEXT, traceIdOf, tracestateFrom, tracestateOf, UNNAMED_TRACE } from '../core/causality/context.ts'
import { randomHex } from '../core/causality/ids.ts'
import { withoutSecretStrings } from '../core/schemas/secret-fields.ts'
import { ATTR, cut, METHODS, queryKeys } from './attributes.ts'
import { hrTimeOf, type SpanSource } from './span-record.ts'

export class RequestSpans implements RequestTracing {
  readonly #source: SpanSource

  constructor(source: SpanSource) {
    this.#source = source
  }

  begin(traceparent: string, tracestate: string, start: () => RequestStart): RequestSpan | TraceContext {
    const parent = traceparent === '' ? NO_TRACE_CONTEXT : parentOf(traceparent, tracestate)
    if (parent === NO_TRACE_CONTEXT) {
      const traceId = this.#source.sampler.begin()
      return traceId === '' ? UNNAMED_TRACE : this.#open(`00-${traceId}-${randomHex(8)}-01`, parent, start)
    }
    const traceId = traceIdOf(parent)
    const isSampled = this.#source.sampler.samples(parent, traceId)
    const traceContext = `00-${traceId}-${randomHex(8)}-0${isSampled ? 1 : 0}${tracestateOf(parent)}`
    return isSampled ? this.#open(traceContext, parent, start) : traceContext
  }

  #open(traceContext: TraceContext, parent: TraceContext, start: () => RequestStart): RequestSpan {
    return new ServerSpan(this.#source, traceContext, parent, start())
  }
}

class ServerSpan implements RequestSpan {
  readonly traceContext: TraceContext
  servedBy = -1
  readonly #source: SpanSource
  readonly #startMs: number
  readonly #parent: TraceContext
  readonly #start: RequestStart

  constructor(source: SpanSource, traceContext: TraceContext, parent: TraceContext, start: RequestStart) {
    this.#source = source
    this.#startMs = source.nowMs()
    this.traceContext = traceContext
    this.#parent = parent
    this.#start = start
  }

  end(status: number): void {
    this.#source.writer.write(() => ({
      context: this.traceContext,
      parent: this.#parent,
      isParentRemote: this.#parent !== NO_TRACE_CONTEXT,
      name: nameOf(this.#start),
      kind: SpanKind.SERVER,
      start: hrTimeOf(this.#startMs),
      end: hrTimeOf(this.#source.nowMs()),
      attributes: attributesOf(this.#start, status, this.servedBy),
      ...(hasFailed(status) && { status: { code: SpanStatusCode.ERROR } }),
    }))
  }
}

/** Source: W3C Trace Context; later versions are read as version 00. */
function parentOf(traceparent: string, tracestate: string): TraceContext {
  const parent = parseTraceParent(traceparent)
  if (parent === null) return NO_TRACE_CONTEXT
  const flags = (parent.traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'
  return `00-${parent.traceId}-${parent.spanId}-${flags}${tracestateFrom(tracestate)}`
}

/** @param status 0: the client disconnected before it was answered */
const hasFailed = (status: number): boolean => status >= 500 || status === 0

function nameOf({ method, route }: RequestStart): string {
  const name = METHODS.has(method) ? method : 'HTTP'
  return cut(route === '' ? name : `${name} ${route}`)
}

/** Source: OpenTelemetry semantic conventions for HTTP server spans. @param servedBy a lane; -1: the primary */
function attributesOf(start: RequestStart, status: number, servedBy: number): SpanAttributes {
  const { method, route, plugin, path, requestId, query, userAgent } = start
  const isKnown = METHODS.has(method)
  const attributes: SpanAttributes = {
    [ATTR.HTTP_METHOD]: isKnown ? method : '_OTHER',
    [ATTR.URL_SCHEME]: 'http',
    [ATTR.PROTOCOL_VERSION]: '1.1',
    [ATTR.URL_PATH]: cut(withoutSecretStrings(path)),
    [ATTR.REQUEST_ID]: requestId,
  }
  if (!isKnown) attributes[ATTR.HTTP_METHOD_ORIGINAL] = cut(method)
  if (route !== '') attributes[ATTR.HTTP_ROUTE] = cut(route)
  if (plugin !== '') attributes[ATTR.PLUGIN] = cut(plugin)
  if (servedBy >= 0) attributes[ATTR.LANE] = servedBy
  if (status > 0) attributes[ATTR.HTTP_STATUS] = status
  if (hasFailed(status)) attributes[ATTR.ERROR_TYPE] = status === 0 ? 'client_gone' : String(status)
  if (userAgent !== '') attributes[ATTR.USER_AGENT] = cut(userAgent)
  if (query !== '') attributes[ATTR.URL_QUERY] = cut(queryKeys(query))
  return addServer(attributes, start.host)
}

/** @param host as the client named it */
function addServer(attributes: SpanAttributes, host: string): SpanAttributes {
  const match = /^(\[[^\]]+\]|[^:]*)(?::(\d{1,5}))?$/.exec(host)
  if (host === '' || match === null) return attributes
  attributes[ATTR.SERVER_ADDRESS] = cut(match[1]!.replace(/^\[|\]$/g, ''))
  if (match[2] !== undefined) attributes[ATTR.SERVER_PORT] = Number(match[2])
  return attributes
}
