import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { RequestStart } from '../../contracts/tracing.ts'
import { ATTR } from '../encoding/attributes.ts'
import { cut, KIND_OFFSET, SPAN, writeAttribute, writeStatus } from '../encoding/otlp.ts'
import { ProtoWriter } from '../encoding/proto-writer.ts'

/** Methods that are named in spans; a client may invent any number of others. RFC 9110, and PATCH of RFC 5789. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'])
/** More than there are lanes, those that were replaced among them: makes one number of a status and a lane. */
const LANES_MAX = 1 << 20
/** What is remembered of routes and of clients, each. */
const REMEMBERED_MAX = 1000

/** What spans tell of requests: most of it is the same again and again, for a route or for a client. */
export class RequestFields {
  readonly #routes = new Remembered()
  readonly #clients = new Remembered()

  /** Source: OpenTelemetry semantic conventions for HTTP server spans. @param status 0: the client was gone before it was answered */
  write(to: ProtoWriter, start: RequestStart, status: number, servedBy: number): void {
    const { method, path, query, host, userAgent, requestId, route } = start
    const outcome = status * LANES_MAX + servedBy
    to.raw(
      this.#routes.find(route, method, outcome) ??
        this.#routes.keep(route, method, outcome, (fields) => writeRoute(fields, start, status, servedBy)),
    )
    to.raw(
      this.#clients.find(host, userAgent, 0) ??
        this.#clients.keep(host, userAgent, 0, (fields) => writeClient(fields, start)),
    )
    attribute(to, ATTR.URL_PATH, cut(path))
    attribute(to, ATTR.REQUEST_ID, requestId)
    if (query !== '') attribute(to, ATTR.URL_QUERY, cut(withoutValues(query)))
  }
}

const attribute = (to: ProtoWriter, key: string, value: unknown): void =>
  writeAttribute(to, SPAN.attributes, key, value)

/** Encoded fields, by what they depend on: two texts and a number. */
class Remembered {
  readonly #fields = new Map<string, Map<string, Map<number, Uint8Array>>>()
  readonly #scratch = new ProtoWriter()
  #size = 0
  #last: { first: string; second: string; number: number; fields: Uint8Array | undefined } | undefined

  find(first: string, second: string, number: number): Uint8Array | undefined {
    const last = this.#last
    // Long texts are compared in a tenth of the time that it takes to hash them, and who asks now often asked before.
    if (last?.number === number && last.second === second && last.first === first) return last.fields
    const fields = this.#fields.get(first)?.get(second)?.get(number)
    this.#last = { first, second, number, fields }
    return fields
  }

  keep(first: string, second: string, number: number, write: (to: ProtoWriter) => void): Uint8Array {
    this.#scratch.clear()
    write(this.#scratch)
    const fields = this.#scratch.copy()
    if (this.#size++ === REMEMBERED_MAX) {
      this.#fields.clear()
      this.#size = 1
    }
    const seconds = this.#fields.get(first) ?? new Map<string, Map<number, Uint8Array>>()
    const numbers = seconds.get(second) ?? new Map<number, Uint8Array>()
    this.#fields.set(first, seconds.set(second, numbers.set(number, fields)))
    this.#last = { first, second, number, fields }
    return fields
  }
}

function writeRoute(to: ProtoWriter, { method, route, plugin }: RequestStart, status: number, servedBy: number): void {
  to.number(SPAN.kind, SpanKind.SERVER + KIND_OFFSET)
  const isKnown = METHODS.has(method)
  const name = isKnown ? method : 'HTTP'
  to.text(SPAN.name, cut(route === '' ? name : `${name} ${route}`))
  attribute(to, ATTR.HTTP_METHOD, isKnown ? method : '_OTHER')
  attribute(to, ATTR.URL_SCHEME, 'http')
  attribute(to, ATTR.PROTOCOL_VERSION, '1.1')
  if (!isKnown) attribute(to, ATTR.HTTP_METHOD_ORIGINAL, cut(method))
  if (route !== '') attribute(to, ATTR.HTTP_ROUTE, cut(route))
  if (plugin !== '') attribute(to, ATTR.PLUGIN, cut(plugin))
  if (servedBy >= 0) attribute(to, ATTR.LANE, servedBy)
  if (status > 0) attribute(to, ATTR.HTTP_STATUS, status)
  if (status >= 500 || status === 0) {
    attribute(to, ATTR.ERROR_TYPE, status === 0 ? 'client_gone' : String(status))
    writeStatus(to, SpanStatusCode.ERROR, '')
  }
}

function writeClient(to: ProtoWriter, { host, userAgent }: RequestStart): void {
  const match = /^(\[[^\]]+\]|[^:]*)(?::(\d{1,5}))?$/.exec(host)
  if (host !== '' && match !== null) {
    attribute(to, ATTR.SERVER_ADDRESS, cut(match[1]!.replace(/^\[|\]$/g, '')))
    if (match[2] !== undefined) attribute(to, ATTR.SERVER_PORT, Number(match[2]))
  }
  if (userAgent !== '') attribute(to, ATTR.USER_AGENT, cut(userAgent))
}

/** Values of a query are data of the request, and data never appear in spans. */
function withoutValues(query: string): string {
  return query
    .split('&')
    .map((pair) => (pair.includes('=') ? `${pair.slice(0, pair.indexOf('='))}=REDACTED` : 'REDACTED'))
    .join('&')
}
