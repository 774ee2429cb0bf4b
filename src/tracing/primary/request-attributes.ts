import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { RequestStart } from '../../contracts/tracing.ts'
import { withoutSecretTexts } from '../../core/schemas/secret-texts.ts'
import { ATTR, METHODS, queryKeys } from '../encoding/attributes.ts'
import { cut } from '../encoding/otlp.ts'
import { type RecordAttributes, RUNTIME_SCOPE, type SpanPlace, type SpanRecord } from '../encoding/span-record.ts'

/** The span of a request as a record, for the console. */
export function requestRecord(place: SpanPlace, start: RequestStart, status: number, servedBy: number): SpanRecord {
  const { traceContext, parent, isParentRemote, startMs, endMs } = place
  const attributes = { ...routeAttributes(start, status, servedBy), ...clientAttributes(start) }
  attributes[ATTR.URL_PATH] = cut(withoutSecretTexts(start.path))
  attributes[ATTR.REQUEST_ID] = start.requestId
  if (start.query !== '') attributes[ATTR.URL_QUERY] = cut(queryKeys(start.query))
  return {
    traceContext,
    parent,
    isParentRemote,
    name: requestSpanName(start),
    kind: SpanKind.SERVER,
    startMs,
    endMs,
    attributes,
    events: [],
    links: [],
    statusCode: hasFailed(status) ? SpanStatusCode.ERROR : SpanStatusCode.UNSET,
    statusMessage: '',
    scope: RUNTIME_SCOPE,
    droppedAttributes: 0,
    droppedEvents: 0,
    droppedLinks: 0,
  }
}

/** @param status 0: the client disconnected before it was answered */
export const hasFailed = (status: number): boolean => status >= 500 || status === 0

export function requestSpanName({ method, route }: RequestStart): string {
  const name = METHODS.has(method) ? method : 'HTTP'
  return cut(route === '' ? name : `${name} ${route}`)
}

/**
 * Attributes that all requests of one route with one outcome have in common.
 * Source: OpenTelemetry semantic conventions for HTTP server spans. @param servedBy a lane; -1: the primary
 */
export function routeAttributes(
  { method, route, plugin }: RequestStart,
  status: number,
  servedBy: number,
): RecordAttributes {
  const isKnown = METHODS.has(method)
  const attributes: RecordAttributes = {
    [ATTR.HTTP_METHOD]: isKnown ? method : '_OTHER',
    [ATTR.URL_SCHEME]: 'http',
    [ATTR.PROTOCOL_VERSION]: '1.1',
  }
  if (!isKnown) attributes[ATTR.HTTP_METHOD_ORIGINAL] = cut(method)
  if (route !== '') attributes[ATTR.HTTP_ROUTE] = cut(route)
  if (plugin !== '') attributes[ATTR.PLUGIN] = cut(plugin)
  if (servedBy >= 0) attributes[ATTR.LANE] = servedBy
  if (status > 0) attributes[ATTR.HTTP_STATUS] = status
  if (hasFailed(status)) attributes[ATTR.ERROR_TYPE] = status === 0 ? 'client_gone' : String(status)
  return attributes
}

/** Attributes that all requests of one client have in common. */
export function clientAttributes({ host, userAgent }: RequestStart): RecordAttributes {
  const attributes: RecordAttributes = {}
  const match = /^(\[[^\]]+\]|[^:]*)(?::(\d{1,5}))?$/.exec(host)
  if (host !== '' && match !== null) {
    attributes[ATTR.SERVER_ADDRESS] = cut(match[1]!.replace(/^\[|\]$/g, ''))
    if (match[2] !== undefined) attributes[ATTR.SERVER_PORT] = Number(match[2])
  }
  if (userAgent !== '') attributes[ATTR.USER_AGENT] = cut(userAgent)
  return attributes
}
