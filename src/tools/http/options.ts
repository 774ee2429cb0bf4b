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

const SCHEMAS = ['body', 'query', 'params', 'response'] as const
/** All options, so that the compiler says when one is missing here. */
const OPTIONS = Object.keys({
  ...{ guards: 1, tags: 1, authValidator: 1, body: 1, query: 1, params: 1, response: 1, rawBody: 1, throws: 1 },
  ...{
    etag: 1,
    timeoutMs: 1,
    idempotency: 1,
    idempotencyScope: 1,
    idempotencyTtlMs: 1,
    summary: 1,
    description: 1,
    maxBytes: 1,
  },
} satisfies Record<keyof EndpointOptions, 1>)

/**
 * Why the options of a route are not valid; undefined when they are.
 * @param method null for a stream or a socket
 */
export function optionFault(options: unknown, method: string | null): string | undefined {
  if (typeof options !== 'object' || options === null) return 'the options must be an object'
  const misspelt = Object.keys(options).find((name) => meantOption(name) !== undefined)
  if (misspelt !== undefined) return `there is no option ${misspelt}: did you mean ${meantOption(misspelt)}?`
  const given = options as Record<string, unknown>
  const { tags, authValidator, timeoutMs, summary, description, throws, guards, rawBody, etag } = given
  if (tags !== undefined && !(Array.isArray(tags) && tags.every((tag) => typeof tag === 'string'))) {
    return 'tags must be an array of strings'
  }
  if (authValidator !== undefined && typeof authValidator !== 'function') return 'authValidator must be a function'
  for (const [name, text] of Object.entries({ summary, description })) {
    if (text !== undefined && typeof text !== 'string') return `${name} must be a string`
  }
  const timeoutFault = msFault('timeoutMs', timeoutMs, MAX_TIMEOUT_MS)
  if (timeoutFault !== undefined) return timeoutFault
  if (guards !== undefined && !(Array.isArray(guards) && guards.every((guard) => typeof guard === 'function'))) {
    return 'guards must be an array of functions: a name that the plugin does not have is undefined'
  }
  const thrownFault = throwsFault(throws) ?? guards?.map((guard) => throwsFault(guard.throws)).find(Boolean)
  if (thrownFault !== undefined) return thrownFault
  const fault = idempotencyFault(method, given) ?? streamedBodyFault(method, given)
  if (fault !== undefined) return fault
  if (etag !== undefined && typeof etag !== 'boolean') return 'etag must be true or false'
  if (etag && method !== 'GET') return 'etag is for GET'
  if (rawBody !== undefined && typeof rawBody !== 'boolean') return 'rawBody must be true or false'
  if (rawBody && given.body !== undefined)
    return 'rawBody wants nothing parsed, so that there is no schema for the body'
  const bad = SCHEMAS.find(
    (key) => given[key] !== undefined && !isStreamed(key, given[key]) && !isStandardSchema(given[key]),
  )
  if (bad === 'body' && typeof given.body === 'string') return "body must be 'stream', 'multipart' or a Standard Schema"
  return bad && `${bad} must be a Standard Schema (an object or function with '~standard')`
}

function msFault(name: string, ms: unknown, max: number): string | undefined {
  const isFitting = ms === undefined || (Number.isInteger(ms) && Number(ms) >= 1 && Number(ms) <= max)
  return isFitting ? undefined : `${name} must be a whole number of milliseconds from 1 to ${max}`
}

/** The option that an unknown name resembles. A route whose `authValidater` was ignored would be open to anybody. */
function meantOption(name: string): string | undefined {
  return OPTIONS.includes(name) ? undefined : nearestName(name, OPTIONS)
}

/** Says of an option that there is none of its name; undefined when all are known. */
export function unknownOption(options: object): string | undefined {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name))
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

function idempotencyFault(
  method: string | null,
  { idempotency, idempotencyTtlMs, idempotencyScope }: Record<string, unknown>,
): string | undefined {
  if (idempotency === undefined) {
    const [lonely] =
      Object.entries({ idempotencyTtlMs, idempotencyScope }).find(([, value]) => value !== undefined) ?? []
    return lonely && `${lonely} needs the option idempotency`
  }
  if (idempotency !== 'optional' && idempotency !== 'required') return "idempotency must be 'optional' or 'required'"
  if (method === null || !UNSAFE_METHODS.includes(method)) {
    return `idempotency is for ${UNSAFE_METHODS.join(', ')}: requests of other kinds change nothing`
  }
  if (idempotencyScope !== undefined && typeof idempotencyScope !== 'function')
    return 'idempotencyScope must be a function: (context) => text'
  return msFault('idempotencyTtlMs', idempotencyTtlMs, MAX_TTL_MS)
}

const BODY_KINDS: readonly unknown[] = ['stream', 'multipart']

const isStreamed = (key: string, value: unknown): boolean => key === 'body' && BODY_KINDS.includes(value)

function streamedBodyFault(
  method: string | null,
  { body, maxBytes, rawBody, idempotency }: Record<string, unknown>,
): string | undefined {
  if (!BODY_KINDS.includes(body)) {
    return maxBytes === undefined ? undefined : "maxBytes is for a body that is streamed: body: 'stream' or 'multipart'"
  }
  if (method === null || !UNSAFE_METHODS.includes(method)) return `body: '${body}' is for ${UNSAFE_METHODS.join(', ')}`
  if (rawBody) return `rawBody wants the whole body, and body: '${body}' reads it while it comes`
  if (idempotency !== undefined)
    return `idempotency compares the whole body, and body: '${body}' reads it while it comes`
  if (maxBytes === undefined || (Number.isSafeInteger(maxBytes) && Number(maxBytes) >= 1)) return undefined
  return 'maxBytes must be a whole number of bytes, from 1'
}
