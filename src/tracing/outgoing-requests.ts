/**
 * The requests that plugins send, by `fetch`, undici or node:http. Each takes the trace on to whom it asks, and is a CLIENT span where the trace is
 * sampled. Node tells of them on channels: nothing of Node's own is replaced, and while tracing is off nobody listens.
 */
import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { SpanAttributes } from '../contracts/tracing.ts'
import {
  causality,
  NO_CAUSE,
  NO_TRACE_CONTEXT,
  traceIdOf,
  traceparentOf,
  tracestateOf,
} from '../core/causality/context.ts'
import { randomHex } from '../core/causality/ids.ts'
import { withoutSecretStrings } from '../core/schemas/secret-fields.ts'
import { ATTR, cut, METHODS, queryKeys } from './attributes.ts'
import { type MadeSpan, type SpanMaker, SpanScope, type ThreadScope } from './scope.ts'

/** A request of undici, which `fetch` is made of. */
interface UndiciRequest {
  readonly origin: string | URL
  readonly path: string
  readonly method: string
  /** Names and values by turns; a text in version 5. */
  readonly headers: string | readonly unknown[]
  readonly upgrade?: unknown
  addHeader(name: string, value: string): unknown
}

interface OpenRequest {
  readonly span: MadeSpan
  response?: IncomingMessage
}

type SetHeader = (name: string, value: string) => unknown

/** Listens for as long as the thread lives. */
export function followOutgoingRequests(spans: SpanMaker): void {
  const open = new WeakMap<object, OpenRequest>()

  /** @param set null: the head is not to be changed */
  function begin(
    request: object,
    method: string,
    origin: string,
    path: string,
    hasSpan: boolean,
    set: SetHeader | null,
  ) {
    const around = (causality.getStore() ?? NO_CAUSE).trace as ThreadScope | null
    const parent = around?.traceContext ?? NO_TRACE_CONTEXT
    if (around === null || parent === NO_TRACE_CONTEXT) return
    let traceContext = parent
    if (!around.isSampled) traceContext = `00-${traceIdOf(parent)}-${randomHex(8)}-00${tracestateOf(parent)}`
    else if (hasSpan) {
      const name = METHODS.has(method) ? method : 'HTTP'
      const span = spans.openIn(around, name, SpanKind.CLIENT, attributesOf(method, origin, path))
      traceContext = span.traceContext
      open.set(request, { span })
    }
    if (set === null) return
    set('traceparent', traceparentOf(traceContext))
    const tracestate = tracestateOf(traceContext)
    if (tracestate !== '') set('tracestate', tracestate)
  }

  function answered(request: object, status: number): void {
    const scope = open.get(request)?.span
    if (!(scope instanceof SpanScope)) return
    scope.span.setAttribute(ATTR.HTTP_STATUS, status)
    if (status >= 400)
      scope.span.setAttribute(ATTR.ERROR_TYPE, String(status)).setStatus({ code: SpanStatusCode.ERROR })
  }

  listen<{ request: UndiciRequest }>('undici:request:create', ({ request }) => {
    const { origin, path, method, headers } = request
    // What has become another protocol is not told of again: it would be a span without an end.
    const hasSpan = !request.upgrade && method !== 'CONNECT'
    const set: SetHeader = (name, value) => request.addHeader(name, value)
    begin(request, method, String(origin), path, hasSpan, hasTraceparent(headers) ? null : set)
  })
  listen<{ request: object; response: { statusCode: number } }>('undici:request:headers', ({ request, response }) =>
    answered(request, response.statusCode),
  )
  listen<{ request: object }>('undici:request:trailers', ({ request }) => open.get(request)?.span.end())
  listen<{ request: object; error: unknown }>('undici:request:error', ({ request, error }) =>
    open.get(request)?.span.fail(error),
  )

  listen<{ request: ClientRequest }>('http.client.request.created', ({ request }) => {
    const { method, protocol, path, host } = request
    const origin = `${protocol}//${request.getHeader('host') ?? host}`
    // A head that was given as a list is written already.
    const isFixed = request.headersSent || request.hasHeader('traceparent')
    begin(request, method, origin, path, true, isFixed ? null : (name, value) => request.setHeader(name, value))
    if (open.has(request)) request.once('close', () => closed(open.get(request)!))
  })
  listen<{ request: ClientRequest; response: IncomingMessage }>('http.client.response.finish', (message) => {
    const { request, response } = message
    const begun = open.get(request)
    if (begun !== undefined) begun.response = response
    answered(request, response.statusCode!)
  })
  listen<{ request: ClientRequest; error: unknown }>('http.client.request.error', ({ request, error }) =>
    open.get(request)?.span.fail(error),
  )
}

function closed({ span, response }: OpenRequest): void {
  // Its answer was cut off.
  if (response?.errored) span.fail(response.errored)
  else span.end()
}

/** What a listener throws would end the thread. */
function listen<Message>(channel: string, listener: (message: Message) => void): void {
  subscribe(channel, (message) => {
    try {
      listener(message as Message)
    } catch {
      // The request goes on without a span.
    }
  })
}

/** The plugin says itself where in a trace it is. */
function hasTraceparent(headers: UndiciRequest['headers']): boolean {
  if (typeof headers === 'string') return /^traceparent:/im.test(headers)
  return headers.some((name, n) => n % 2 === 0 && String(name).toLowerCase() === 'traceparent')
}

/** Source: OpenTelemetry semantic conventions for HTTP client spans. */
function attributesOf(method: string, origin: string, path: string): SpanAttributes {
  // A request to a proxy has a whole URL for a path.
  const url = new URL(path.startsWith('/') ? origin + path : path, origin)
  const query = url.search === '' ? '' : `?${queryKeys(url.search.slice(1))}`
  const attributes: SpanAttributes = {
    [ATTR.HTTP_METHOD]: METHODS.has(method) ? method : '_OTHER',
    [ATTR.URL_FULL]: cut(withoutSecretStrings(url.origin + url.pathname) + query),
    [ATTR.SERVER_ADDRESS]: url.hostname.replace(/^\[|\]$/g, ''),
    [ATTR.SERVER_PORT]: Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
  }
  if (!METHODS.has(method)) attributes[ATTR.HTTP_METHOD_ORIGINAL] = cut(method)
  return attributes
}
