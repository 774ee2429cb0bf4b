import type { RequestStart } from '../contracts/tracing.ts'
import { ATTR } from './attributes.ts'
import { quoted } from './span-record.ts'

/** Methods that are named in spans; a client may invent any number of others. RFC 9110, and PATCH of RFC 5789. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'])
/** Texts that are remembered of routes and of clients, each. */
const TEXTS_MAX = 1000

/** The JSON of what spans tell of requests: most of it is the same again and again, for a route or for a client. */
export class RequestTexts {
  readonly #names = new Map<string, string>()
  readonly #routes = new Map<string, string>()
  readonly #clients = new Map<string, string>()

  nameOf({ method, route }: RequestStart): string {
    return remembered(this.#names, `${method} ${route}`, () => {
      const name = METHODS.has(method) ? method : 'HTTP'
      return quoted(route === '' ? name : `${name} ${route}`)
    })
  }

  /** Source: OpenTelemetry semantic conventions for HTTP server spans. @param status 0: the client was gone before it was answered */
  attributesOf(start: RequestStart, status: number, servedBy: number): string {
    const { method, path, query, host, userAgent, requestId, route, plugin } = start
    let text =
      remembered(this.#routes, `${method} ${route} ${plugin}`, () => routeText(start)) +
      remembered(this.#clients, `${host} ${userAgent}`, () => clientText(start)) +
      `"${ATTR.URL_PATH}":${quoted(path)},"${ATTR.REQUEST_ID}":${quoted(requestId)}`
    if (query !== '') text += `,"${ATTR.URL_QUERY}":${quoted(withoutValues(query))}`
    if (servedBy >= 0) text += `,"${ATTR.LANE}":${servedBy}`
    if (status > 0) text += `,"${ATTR.HTTP_STATUS}":${status}`
    if (status >= 500) text += `,"${ATTR.ERROR_TYPE}":"${status}"`
    else if (status === 0) text += `,"${ATTR.ERROR_TYPE}":"client_gone"`
    return text
  }
}

function remembered(texts: Map<string, string>, key: string, make: () => string): string {
  let text = texts.get(key)
  if (text === undefined) {
    text = make()
    if (texts.size >= TEXTS_MAX) texts.clear()
    texts.set(key, text)
  }
  return text
}

function routeText({ method, route, plugin }: RequestStart): string {
  const isKnown = METHODS.has(method)
  let text = `"${ATTR.HTTP_METHOD}":"${isKnown ? method : '_OTHER'}","${ATTR.URL_SCHEME}":"http","${ATTR.PROTOCOL_VERSION}":"1.1",`
  if (!isKnown) text += `"${ATTR.HTTP_METHOD_ORIGINAL}":${quoted(method)},`
  if (route !== '') text += `"${ATTR.HTTP_ROUTE}":${quoted(route)},`
  if (plugin !== '') text += `"${ATTR.PLUGIN}":${quoted(plugin)},`
  return text
}

function clientText({ host, userAgent }: RequestStart): string {
  let text = ''
  const match = /^(\[[^\]]+\]|[^:]*)(?::(\d{1,5}))?$/.exec(host)
  if (host !== '' && match !== null) {
    text += `"${ATTR.SERVER_ADDRESS}":${quoted(match[1]!.replace(/^\[|\]$/g, ''))},`
    if (match[2] !== undefined) text += `"${ATTR.SERVER_PORT}":${Number(match[2])},`
  }
  if (userAgent !== '') text += `"${ATTR.USER_AGENT}":${quoted(userAgent)},`
  return text
}

/** Values of a query are data of the request, and data never appear in spans. */
function withoutValues(query: string): string {
  return query
    .split('&')
    .map((pair) => (pair.includes('=') ? `${pair.slice(0, pair.indexOf('='))}=REDACTED` : 'REDACTED'))
    .join('&')
}
