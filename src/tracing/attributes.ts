/**
 * Names of attributes. Those that begin with `heddle.` are ours; the others are from OpenTelemetry's semantic conventions 1.37, in which
 * HTTP, database and code are stable and messaging is in development. Source: https://opentelemetry.io/docs/specs/semconv/
 */
export const ATTR = {
  HTTP_METHOD: 'http.request.method',
  HTTP_METHOD_ORIGINAL: 'http.request.method_original',
  HTTP_ROUTE: 'http.route',
  HTTP_STATUS: 'http.response.status_code',
  URL_FULL: 'url.full',
  URL_PATH: 'url.path',
  URL_QUERY: 'url.query',
  URL_SCHEME: 'url.scheme',
  SERVER_ADDRESS: 'server.address',
  SERVER_PORT: 'server.port',
  PROTOCOL_VERSION: 'network.protocol.version',
  USER_AGENT: 'user_agent.original',
  ERROR_TYPE: 'error.type',
  DB_RESPONSE_STATUS: 'db.response.status_code',
  MESSAGING_SYSTEM: 'messaging.system',
  MESSAGING_OPERATION: 'messaging.operation.name',
  MESSAGING_OPERATION_TYPE: 'messaging.operation.type',
  MESSAGING_DESTINATION: 'messaging.destination.name',
  MESSAGING_MESSAGE_ID: 'messaging.message.id',
  MESSAGING_GROUP: 'messaging.consumer.group.name',
  TOOL: 'heddle.tool',
  METHOD: 'heddle.tool.method',
  PLUGIN: 'heddle.plugin',
  LANE: 'heddle.lane',
  REQUEST_ID: 'heddle.request_id',
  EVENT_ID: 'heddle.event.id',
  EVENT_ATTEMPT: 'heddle.event.attempt',
  EVENT_ATTEMPTS: 'heddle.event.attempts',
  EVENT_DEATHS: 'heddle.event.deaths',
  RETRY_DELAY: 'heddle.retry.delay_ms',
} as const

/** The messaging system is the runtime itself, whatever transport it uses. */
export const MESSAGING_SYSTEM = 'heddle'

/** Only these methods are named in spans, because a client may invent any number of others. RFC 9110, and PATCH of RFC 5789. */
export const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'])

/** Longer names, messages and texts from clients are cut, so that an export of many spans is not too large for its receiver. Characters. */
const TEXT_MAX_LENGTH = 1024

export const cut = (text: string): string => (text.length > TEXT_MAX_LENGTH ? text.slice(0, TEXT_MAX_LENGTH) : text)

/** A query without its values: they are data of the request, which spans must not contain. */
export function queryKeys(query: string): string {
  const pairs = query
    .split('&')
    .map((pair) => (pair.includes('=') ? `${pair.slice(0, pair.indexOf('='))}=REDACTED` : 'REDACTED'))
  return pairs.join('&')
}
