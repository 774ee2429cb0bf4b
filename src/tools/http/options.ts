// Checks of a route's options and path.
import type { EndpointOptions } from '../../contracts/http-request.ts'
import { nearestName } from '../../core/config/nearest-name.ts'
import { isStandardSchema } from '../../core/schemas/standard-schema.ts'

const MAX_PATH_CHARS = 1024

// Keys of a handler's `data` that only the runtime may set.
const RESERVED = /^(_auth|_files|__proto__$|constructor$|prototype$)/

/** Why a route's path is not valid; undefined when it is, like `/users/:id` and `/files/*`. */
export function pathFault(path: unknown): string | undefined {
  if (typeof path !== 'string') return 'the path must be a string'
  if (!path.startsWith('/')) return "the path must start with '/'"
  if (path.length > MAX_PATH_CHARS) return `the path must have at most ${MAX_PATH_CHARS} characters`
  if (/[?#]/.test(path)) return "the path must not contain '?' or '#'"
  if (/[\s\p{Cc}]/u.test(path)) return 'the path must not contain blanks or control characters'
  if (path.includes('//')) return "the path must not contain '//'"

  const segments = path.slice(1).split('/')
  const names = new Set<string>()
  for (const [index, segment] of segments.entries()) {
    if (segment.includes('*') && (segment !== '*' || index !== segments.length - 1)) {
      return "'*' must be the whole last segment"
    }
    const braced = /^\{([A-Za-z_][A-Za-z0-9_]*)\}$/.exec(segment)?.[1]
    if (braced !== undefined) return `'{${braced}}' is no parameter here: write ':${braced}'`
    if (!segment.includes(':')) continue
    const name = /^:([A-Za-z_][A-Za-z0-9_]*)$/.exec(segment)?.[1]
    if (name === undefined) return `a parameter must fill its segment, like '/:id', not '/${segment}'`
    if (RESERVED.test(name)) return `the parameter name '${name}' is reserved`
    if (names.has(name)) return `the parameter ':${name}' stands there twice`
    names.add(name)
  }
  return undefined
}

// The longest delay that Node's timers take.
const MAX_TIMEOUT_MS = 2_147_483_647

// One year and a day.
const MAX_TTL_MS = 366 * 86_400_000
const UNSAFE_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE']
const isUnsafe = (method: string | null): boolean => method !== null && UNSAFE_METHODS.includes(method)

/** Reset Content and Partial Content, which want more than a status. */
const WITH_OTHER_MEANING = new Set([205, 206])

const BODY_KINDS: readonly unknown[] = ['stream', 'multipart']

type Given = Record<string, unknown>
/** Why the value of an option is not valid; undefined when it is. @param method null for a stream or a socket */
type Check = (value: unknown, given: Given, method: string | null) => string | undefined

const unless = (isFitting: boolean, fault: string): string | undefined => (isFitting ? undefined : fault)

const schemaFault = (name: string, schema: unknown): string | undefined =>
  unless(isStandardSchema(schema), `${name} must be a Standard Schema (an object or function with '~standard')`)

function msFault(name: string, ms: unknown, max: number): string | undefined {
  const isFitting = Number.isInteger(ms) && Number(ms) >= 1 && Number(ms) <= max
  return unless(isFitting, `${name} must be a whole number of milliseconds from 1 to ${max}`)
}

const isListOf = (type: 'string' | 'function', list: unknown): boolean =>
  Array.isArray(list) && list.every((each) => typeof each === type)

/** All options, and what is wrong with one that is given. */
const CHECKS: Record<keyof EndpointOptions, Check> = {
  guards: (guards) =>
    isListOf('function', guards)
      ? (guards as readonly { throws?: unknown }[]).map((guard) => throwsFault(guard.throws)).find(Boolean)
      : 'guards must be an array of functions: a name that the plugin does not have is undefined',
  tags: (tags) => unless(isListOf('string', tags), 'tags must be an array of strings'),
  authValidator: (validator) => unless(typeof validator === 'function', 'authValidator must be a function'),
  body: (body, _, method) => {
    if (BODY_KINDS.includes(body))
      return unless(isUnsafe(method), `body: '${body}' is for ${UNSAFE_METHODS.join(', ')}`)
    if (typeof body === 'string') return "body must be 'stream', 'multipart' or a Standard Schema"
    return schemaFault('body', body)
  },
  query: (query) => schemaFault('query', query),
  params: (params) => schemaFault('params', params),
  response: (response) => schemaFault('response', response),
  status: (status, { response }, method) => {
    if (method === null) return 'status is for endpoints: a stream answers with 200, a WebSocket with 101'
    const isSuccess = Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 299
    if (!isSuccess || WITH_OTHER_MEANING.has(Number(status)))
      return 'status must be a whole number from 200 to 299, except 205 and 206: set others by context.setStatus'
    return unless(status !== 204 || response === undefined, 'status 204 has no body: leave out response')
  },
  rawBody: (rawBody, { body }) => {
    if (typeof rawBody !== 'boolean') return 'rawBody must be true or false'
    if (!rawBody || body === undefined) return undefined
    return BODY_KINDS.includes(body)
      ? `rawBody wants the whole body, and body: '${body}' reads it while it comes`
      : 'rawBody wants nothing parsed, so that there is no schema for the body'
  },
  throws: (throws) => throwsFault(throws),
  etag: (etag, _, method) => {
    if (typeof etag !== 'boolean') return 'etag must be true or false'
    return unless(!etag || method === 'GET', 'etag is for GET')
  },
  timeoutMs: (ms) => msFault('timeoutMs', ms, MAX_TIMEOUT_MS),
  idempotency: (idempotency, { body }, method) => {
    if (idempotency !== 'optional' && idempotency !== 'required') return "idempotency must be 'optional' or 'required'"
    if (!isUnsafe(method))
      return `idempotency is for ${UNSAFE_METHODS.join(', ')}: requests of other kinds change nothing`
    const fault = `idempotency compares the whole body, and body: '${body}' reads it while it comes`
    return unless(!BODY_KINDS.includes(body), fault)
  },
  idempotencyScope: (scope, { idempotency }) => {
    if (idempotency === undefined) return 'idempotencyScope needs the option idempotency'
    return unless(typeof scope === 'function', 'idempotencyScope must be a function: (context) => text')
  },
  idempotencyTtlMs: (ms, { idempotency }) =>
    idempotency === undefined
      ? 'idempotencyTtlMs needs the option idempotency'
      : msFault('idempotencyTtlMs', ms, MAX_TTL_MS),
  summary: (summary) => unless(typeof summary === 'string', 'summary must be a string'),
  description: (description) => unless(typeof description === 'string', 'description must be a string'),
  maxBytes: (bytes, { body }) =>
    BODY_KINDS.includes(body)
      ? unless(Number.isSafeInteger(bytes) && Number(bytes) >= 1, 'maxBytes must be a whole number of bytes, from 1')
      : "maxBytes is for a body that is streamed: body: 'stream' or 'multipart'",
}
const OPTIONS = Object.keys(CHECKS) as (keyof EndpointOptions)[]

/**
 * Why the options of a route are not valid; undefined when they are.
 * @param method null for a stream or a socket
 */
export function optionFault(options: unknown, method: string | null): string | undefined {
  if (typeof options !== 'object' || options === null) return 'the options must be an object'
  const misspelt = Object.keys(options).find((name) => meantOption(name) !== undefined)
  if (misspelt !== undefined) return `there is no option ${misspelt}: did you mean ${meantOption(misspelt)}?`
  const given = options as Given
  const checked = OPTIONS.filter((name) => given[name] !== undefined)
  return checked.map((name) => CHECKS[name](given[name], given, method)).find((fault) => fault !== undefined)
}

const OF_MOUNTS = ['guards', 'tags', 'summary', 'description', 'throws', 'authValidator', 'timeoutMs', 'maxBytes']

/** Why the options of a fetch handler are not valid; undefined when they are. */
export function mountFault(options: object, own: Readonly<Record<string, unknown>>): string | undefined {
  const all = [...OF_MOUNTS, ...Object.keys(own)]
  const other = Object.keys(options).find((name) => !OF_MOUNTS.includes(name))
  if (other !== undefined) return `there is no option ${other} for it: there are ${all.join(', ')}`
  for (const [name, value] of Object.entries(own))
    if (typeof value !== 'boolean') return `${name} must be true or false`
  return optionFault({ ...options, body: 'stream' }, 'POST')
}

const isOption = (name: string): boolean => Object.hasOwn(CHECKS, name)

/** The option that an unknown name resembles. A route whose `authValidater` was ignored would be open to anybody. */
function meantOption(name: string): string | undefined {
  return isOption(name) ? undefined : nearestName(name, OPTIONS)
}

/** Says of an option that there is none of its name; undefined when all are known. */
export function unknownOption(options: object): string | undefined {
  const unknown = Object.keys(options).find((name) => !isOption(name))
  return (
    unknown &&
    `there is no option ${unknown}, so that it does nothing. Fix: remove it; there are ${OPTIONS.join(', ')}.`
  )
}

/** Why what a route or a guard says that it throws is not valid; undefined when it is. */
export function throwsFault(throws: unknown): string | undefined {
  if (throws === undefined) return undefined
  if (typeof throws !== 'object' || throws === null) return 'throws must be an object: { 403: "Admins only" }'
  for (const [status, thrown] of Object.entries(throws)) {
    if (!/^[45]\d\d$/.test(status)) return `throws has the status ${status}, which is not from 400 to 599`
    if (typeof thrown === 'string') continue
    if (typeof thrown !== 'object' || thrown === null) return `throws[${status}] must be a text or an object`
    if (thrown.details !== undefined && !isStandardSchema(thrown.details))
      return `throws[${status}].details must be a Standard Schema (an object or function with '~standard')`
    const codes: unknown[] = thrown.code === undefined ? [] : [thrown.code].flat()
    if (!codes.every((code) => typeof code === 'string'))
      return `throws[${status}].code must be a text or a list of texts`
  }
  return undefined
}

/** Why what `identify` says of clients is not valid; undefined when it is. */
export function schemesFault(schemes: unknown): string | undefined {
  if (schemes === undefined) return undefined
  const isScheme = (each: unknown): boolean =>
    each === 'bearer' || each === 'cookie' || typeof (each as { type?: unknown } | null)?.type === 'string'
  return Array.isArray(schemes) && schemes.every(isScheme)
    ? undefined
    : "schemes must be a list of 'bearer', 'cookie' and security schemes of OpenAPI, such as { type: 'apiKey', in: 'header', name: 'x-key' }"
}
