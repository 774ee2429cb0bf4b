import type { JsonSchema, RouteInfo, ThrownInfo } from '../../contracts/registry.ts'
import { CATALOGUE, type ErrorCode } from '../../core/errors/catalogue.ts'
import { capital } from '../words.ts'
import type { Components } from './components.ts'
import { exampleOf } from './schema-example.ts'

export interface Response {
  description: string
  headers?: Record<string, unknown>
  content?: Record<string, { schema?: JsonSchema; example?: unknown; examples?: Record<string, { value: unknown }> }>
}

type Responses = Record<string, Response | { $ref: string }>

/** The responses of the runtime itself: name of the component, status, meaning, and the errors that cause it. */
const RUNTIME_RESPONSES = {
  BadRequest: [
    400,
    'The request is malformed, or the handler says that it failed.',
    ['HTTP_BAD_REQUEST', 'HTTP_IDEMPOTENCY_KEY'],
  ],
  Unauthorized: [401, 'The token is missing, invalid or expired.', ['HTTP_AUTH_MISSING', 'HTTP_AUTH_INVALID']],
  NotFound: [404, 'There is no such resource.', ['HTTP_NOT_FOUND']],
  RequestTimeout: [408, 'The body did not arrive in time.', ['HTTP_REQUEST_TIMEOUT']],
  StillRunning: [
    409,
    'A request with this `Idempotency-Key` is still running. Try again after as many seconds as `retry-after` says.',
    ['HTTP_IDEMPOTENCY_RUNNING'],
  ],
  BodyTooLarge: [413, 'The body is too large.', ['HTTP_BODY_TOO_LARGE']],
  UnsupportedMediaType: [415, 'The body is of a type, charset or encoding that is not supported.', ['HTTP_MEDIA_TYPE']],
  ValidationFailed: [422, 'The input does not fit its schema; `details` says where.', ['HTTP_VALIDATION']],
  KeyReused: [
    422,
    'This `Idempotency-Key` came with another request before. Or the input does not fit its schema: then `details` says where.',
    ['HTTP_IDEMPOTENCY_REUSED'],
  ],
  InternalError: [500, 'The handler failed. The log has the error, with the request id.', ['HTTP_INTERNAL']],
  Unavailable: [
    503,
    'Overloaded, starting or shutting down. Try again after as many seconds as `retry-after` says.',
    ['HTTP_OVERLOADED', 'HTTP_STARTING', 'HTTP_DRAINING', 'PLUGIN_SET_ASIDE'],
  ],
  OriginRefused: [403, 'A page of another origin wants to open a WebSocket.', ['HTTP_ORIGIN_REFUSED']],
  UpgradeRequired: [426, 'The request does not ask for a WebSocket.', ['HTTP_UPGRADE_REQUIRED']],
  HandlerTimeout: [504, 'The handler did not answer in time.', ['HTTP_HANDLER_TIMEOUT', 'HTTP_LANE_STALLED']],
} as const satisfies Record<string, readonly [status: number, description: string, codes: readonly ErrorCode[]]>

type RuntimeAnswer = keyof typeof RUNTIME_RESPONSES

/** Schemas and responses that many operations share. Source of the envelope: the rules of the HTTP interface. */
export const FAILURE_SCHEMAS: Readonly<Record<'Failure' | 'ValidationFailure', JsonSchema>> = {
  Failure: {
    type: 'object',
    description: 'The body of every failure.',
    required: ['success', 'error'],
    properties: { success: { const: false }, error: { type: 'string' } },
  },
  ValidationFailure: {
    type: 'object',
    required: ['success', 'error', 'details'],
    properties: {
      success: { const: false },
      error: { type: 'string' },
      details: {
        type: 'array',
        items: {
          type: 'object',
          required: ['path', 'message'],
          properties: {
            path: { type: 'string', description: 'Keys and indexes, joined by dots.' },
            message: { type: 'string' },
          },
        },
      },
    },
  },
}

const HEADERS: { [Name in RuntimeAnswer]?: Record<string, unknown> } = {
  Unauthorized: { 'www-authenticate': { schema: { type: 'string' }, example: 'Bearer' } },
  StillRunning: { 'retry-after': { description: 'Seconds.', schema: { type: 'integer', minimum: 1 }, example: 1 } },
  Unavailable: { 'retry-after': { description: 'Seconds.', schema: { type: 'integer', minimum: 1 }, example: 1 } },
}

/** The name of the response that stands for all that a handler may choose at run time. */
const OTHER = 'OtherStatus'

/** `components.responses` of a document. @param used names of those that it refers to */
export function sharedResponses(used?: ReadonlySet<string>): Record<string, Response> {
  const shared: Record<string, Response> = {}
  if (used?.has(OTHER) !== false) shared[OTHER] = { description: 'Another status, when the handler chooses one.' }
  for (const [name, [, description, codes]] of Object.entries(RUNTIME_RESPONSES)) {
    if (used?.has(name) === false) continue
    const isValidation = name === 'ValidationFailed'
    const details = isValidation ? { details: [{ path: 'email', message: 'Invalid email address' }] } : {}
    const examples = Object.fromEntries(
      codes.map((code) => [code, { value: { success: false, error: CATALOGUE[code][1], ...details } }]),
    )
    const headers = HEADERS[name as RuntimeAnswer]
    const schema = { $ref: `#/components/schemas/${isValidation ? 'ValidationFailure' : 'Failure'}` }
    shared[name] = { description, ...(headers && { headers }), content: { 'application/json': { schema, examples } } }
  }
  return shared
}

const SOCKET: Response = { description: 'A WebSocket (RFC 6455) from here on.' }

/** The responses that an operation may give. 405 is left out, since it answers methods that the path does not have. */
export function responsesOf(route: RouteInfo, id: string, hasBody: boolean, components: Components): Responses {
  const { schemas, path } = route
  const canHappen: Record<RuntimeAnswer, boolean> = {
    BadRequest: true,
    Unauthorized: route.has_auth,
    NotFound: path.includes('/:') || path.endsWith('/*'),
    RequestTimeout: hasBody,
    StillRunning: route.idempotency !== null,
    BodyTooLarge: hasBody,
    UnsupportedMediaType: hasBody && !route.has_raw_body && route.streamed_body !== 'stream',
    ValidationFailed: (schemas.body ?? schemas.query ?? schemas.params) !== undefined,
    KeyReused: route.idempotency !== null,
    InternalError: true,
    Unavailable: true,
    OriginRefused: route.is_socket,
    UpgradeRequired: route.is_socket,
    HandlerTimeout: route.timeout_ms > 0 || route.host === 'lanes',
  }
  const responses: Responses = route.is_socket ? { '101': SOCKET } : { [route.status]: success(route, id, components) }
  for (const [name, [status]] of Object.entries(RUNTIME_RESPONSES)) {
    if (canHappen[name as RuntimeAnswer]) responses[status] = { $ref: `#/components/responses/${name}` }
  }
  for (const [status, info] of Object.entries(route.throws))
    responses[status] = thrownResponse(info, `${capital(id)}Error${status}`, responses[status], components)
  if (!route.is_stream && !route.is_socket) responses.default = { $ref: `#/components/responses/${OTHER}` }
  return responses
}

/** An answer that the route throws. @param own what the runtime answers with that status, too */
function thrownResponse(
  { description, codes, details }: ThrownInfo,
  name: string,
  own: Responses[string] | undefined,
  components: Components,
): Response {
  const properties: Record<string, JsonSchema> = { success: { const: false }, error: { type: 'string' } }
  if (codes.length > 0) properties.code = { type: 'string', enum: codes }
  if (details !== null) properties.details = components.schema(`${name}Details`, details)
  const thrown = { type: 'object', required: ['success', 'error'], properties }
  const text = description ?? 'The handler says so.'
  const shared = own !== undefined && '$ref' in own ? sharedResponses()[own.$ref.split('/').at(-1)!] : undefined
  const media = shared?.content?.['application/json']
  if (shared === undefined || media?.schema === undefined)
    return { description: text, content: { 'application/json': { schema: thrown } } }
  const schema = { anyOf: [thrown, media.schema] }
  return {
    ...shared,
    description: `${text} Or: ${shared.description}`,
    content: { 'application/json': { ...media, schema } },
  }
}

function success({ schemas, status, is_stream }: RouteInfo, id: string, components: Components): Response {
  if (is_stream) {
    const schema = { type: 'string', description: 'Each frame is a line `data: <JSON>` and an empty one.' }
    return { description: 'Server-sent events, until the client leaves.', content: { 'text/event-stream': { schema } } }
  }
  if (status === 204) return { description: 'Done; there is no body.' }
  // Without content it would say that there is none.
  if (schemas.response === undefined)
    return { description: 'The response of the handler.', content: { 'application/json': {} } }
  const example = exampleOf(schemas.response, 'text')
  const schema = components.schema(`${capital(id)}Response`, schemas.response)
  const media = { schema, ...(example === undefined ? {} : { example: example.value }) }
  return { description: 'The response of the handler.', content: { 'application/json': media } }
}
