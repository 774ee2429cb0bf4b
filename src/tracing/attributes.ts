// What spans show: names of attributes, what is cut of texts, and what was thrown.
import { CATALOGUE, DbError, HeddleError } from '../core/errors/catalogue.ts'
import { codeOf, messageOf, nameOf, stackOf } from '../core/errors/description.ts'
import { frameLines } from '../core/errors/places.ts'
import { withoutSecretStrings } from '../core/schemas/secret-fields.ts'

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

/** Longer messages and stacks are cut. Characters. */
const MESSAGE_MAX_LENGTH = 1024
const STACK_MAX_LENGTH = 4096

/** How a span shows something that was thrown. */
interface ShownException {
  /** `error.type`: the code of the error if it has one; the kind of a database error. */
  type: string
  message: string
  /** The attributes of the span's event `exception`. */
  attributes: Record<string, string>
  /** Further attributes of the span. */
  more: Record<string, string>
}

/**
 * Errors of plugins are shown with their message. Errors of the runtime and of its tools may quote values that they were given, so only
 * their code and its text from the catalogue are shown. Never throws, although getters of a thrown object may.
 */
export function exceptionOf(thrown: unknown): ShownException {
  try {
    return shown(thrown)
  } catch {
    const message = 'Something was thrown that cannot be read'
    return { type: 'unreadable', message, attributes: { 'exception.message': message }, more: {} }
  }
}

function shown(thrown: unknown): ShownException {
  if (!(thrown instanceof Error)) {
    const message = withoutSecretStrings(messageOf(thrown)).slice(0, MESSAGE_MAX_LENGTH)
    return { type: typeof thrown, message, attributes: { 'exception.message': message }, more: {} }
  }
  const code = codeOf(thrown)
  const name = nameOf(thrown)
  const message = safeMessageOf(thrown).slice(0, MESSAGE_MAX_LENGTH)
  const more: Record<string, string> = {}
  // What the database answered with, for example a SQLSTATE.
  const response = thrown instanceof DbError ? codeOf(thrown.cause) : undefined
  if (response !== undefined) more[ATTR.DB_RESPONSE_STATUS] = response
  return {
    type: thrown instanceof DbError ? thrown.kind : (code ?? name),
    message,
    attributes: {
      'exception.type': code ?? name,
      'exception.message': message,
      'exception.stacktrace': `${name}: ${message}\n${frameLines(stackOf(thrown)).join('\n')}`.slice(
        0,
        STACK_MAX_LENGTH,
      ),
    },
    more,
  }
}

function safeMessageOf(thrown: Error): string {
  if (thrown instanceof DbError) return `Database error: ${thrown.kind}`
  if (thrown instanceof HeddleError) return CATALOGUE[thrown.code][1]
  return withoutSecretStrings(messageOf(thrown))
}
