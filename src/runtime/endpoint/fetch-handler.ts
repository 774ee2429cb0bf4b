// A fetch handler as a route: a Request is made for it, and its Response is the answer.
import type { Endpoint, FetchMount } from '../../contracts/http.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { isInstance } from '../../core/errors/description.ts'
import type { RequestContext } from './context.ts'
import { IncomingBody } from './input/body.ts'
import type { BodySource } from './stream/body-source.ts'
import { ResponseBody } from './stream/response-body.ts'

/**
 * What a URL or a library takes for another path than it is: segments of dots, backslashes, a fragment, and encoded characters that nobody need
 * encode (RFC 3986, section 2.3; old clients do so with the tilde). Guards have seen the path as it came.
 */
const OTHER_PATH = /[\\#]|\/\.{1,2}(?:\/|$)|%(?:3\d|[46][1-9a-f]|[57][\da]|2[de]|5f)/i
/** A URL would take the rest of such a host for the path. */
const NO_HOST = /[\\/?#]/
/** The first of the proxies has seen the client. */
const PATH_FAULT =
  'The path has a segment of dots, a backslash, a #, or an encoded letter, digit, dot, hyphen or underscore'
const BODILESS = new Set(['GET', 'HEAD'])

const EVENTS = 'text/event-stream'
const UNBUFFERED = 'x-accel-buffering'
/** A comment. */
const OPEN = Buffer.from(': open\n\n')
const SUMMARY = 'Requests of any method under a prefix'

export function mountEndpoint(mount: FetchMount): Endpoint {
  const { owner, prefix, handler, options, stripPrefix, crossOrigin } = mount
  // Not before there is a mount: it loads what no other lane needs.
  const MountedRequest = requestClass()
  const from = stripPrefix ? prefix.split('/').length - 1 : 0

  function requestOf(context: RequestContext): Request {
    const { method, path, headers, scheme } = context
    if (OTHER_PATH.test(path)) throw new HeddleError('HTTP_BAD_REQUEST', PATH_FAULT)
    const host = headers.host || 'localhost'
    if (NO_HOST.test(host)) throw new HeddleError('HTTP_BAD_REQUEST', 'The host is none')
    const query = context.rawQuery === '' ? '' : `?${context.rawQuery}`
    const address = `${scheme}://${host}${behind(path, from)}${query}`
    const body = BODILESS.has(method) ? null : bodyOf(context)
    const init: RequestInit = body === null ? { method } : { method, body, duplex: 'half' }
    try {
      return new MountedRequest(address, { ...init, headers }, context)
    } catch {
      // Looked at only now: nearly all are ASCII.
      return requestOfBytes(address, { ...init, headers: latin1(headers) }, context)
    }
  }

  function requestOfBytes(address: string, init: RequestInit, context: RequestContext): Request {
    try {
      return new MountedRequest(address, init, context)
    } catch (cause) {
      const message = 'The request has an address or a header that no Request can have'
      throw new HeddleError('HTTP_BAD_REQUEST', message, { cause })
    }
  }

  return {
    ...{ kind: 'endpoint', owner, method: 'ALL', path: `${prefix}/*`, crossOrigin },
    options: { summary: SUMMARY, ...options, body: 'stream' },
    handler: async (_data, given) => {
      const context = given as RequestContext
      const response: unknown = await handler.call(owner.instance, requestOf(context), context)
      if (!isResponse(response)) throw notAResponse(response)
      const { body } = context
      // What the handler has made an error of its own of: the body was too large, or came too slowly.
      if (response.status >= 500 && body instanceof IncomingBody && isInstance(body.errored, HeddleError))
        throw body.errored
      await answerWith(response, context)
    },
  }
}

async function answerWith({ status, headers, body, bodyUsed }: Response, context: RequestContext): Promise<void> {
  if (bodyUsed) throw new HeddleError('HTTP_ANSWER_INVALID', USED)
  const source = body === null ? null : new ResponseBody(body)
  try {
    context.setStatus(status)
    headers.forEach((value, name) => {
      context.setHeader(name, value)
    })
    if (source !== null) await answerFrom(source, headers, context)
    else if (context.method === 'HEAD') context.sendSource(unmade(headers))
    else context.sendBytes(NO_BYTES)
  } catch (thrown) {
    // What makes it is not to go on.
    source?.close()
    throw thrown
  }
}

async function answerFrom(body: ResponseBody, headers: Headers, context: RequestContext): Promise<void> {
  const whole = await body.whole()
  if (whole !== null) return context.sendBytes(whole)
  context.signal.addEventListener('abort', () => body.close())
  const isOfEvents = headers.get('content-type')?.startsWith(EVENTS)
  // nginx would keep them.
  if (isOfEvents && !headers.has(UNBUFFERED)) context.setHeader(UNBUFFERED, 'no')
  // The listener's library sends a head with the first bytes behind it: a client of events is to learn at once that it is connected.
  if (isOfEvents && !headers.has('content-encoding')) body.begin(OPEN)
  context.sendSource(body)
}

const NO_BYTES = new Uint8Array(0)

/** The body that an answer to HEAD is without: its length is what the handler says, or nobody knows it. */
function unmade(headers: Headers): BodySource {
  const length = headers.get('content-length') ?? ''
  return { lengthBytes: /^\d{1,15}$/.test(length) ? Number(length) : -1, next: async () => null, close: () => {} }
}

const USED = 'The body of the Response was read already: return a new Response, or a clone, for each request'

/** Of any library: not all of them make those of Node. */
const isResponse = (value: unknown): value is Response => {
  const { status, headers } = (value ?? {}) as Partial<Response>
  return Number.isInteger(status) && typeof headers?.forEach === 'function'
}

function notAResponse(value: unknown): HeddleError {
  const what = value === null ? 'null' : typeof value
  return new HeddleError('HTTP_ANSWER_INVALID', `A fetch handler returned ${what}: return a Response`)
}

/** The body of the request: whole where it came with it. */
function bodyOf({ body, rawBody }: RequestContext): Uint8Array | ReadableStream | null {
  // The stream that a Request makes of an iterable throws where nobody catches it when that ends after it was given up (undici#5715): that ends the lane.
  if (body instanceof IncomingBody) return ReadableStream.from(body)
  return rawBody.byteLength > 0 ? rawBody : null
}

/** The path behind its first segments. */
function behind(path: string, segments: number): string {
  let at = 0
  for (let n = 0; n < segments && at >= 0; n++) at = path.indexOf('/', at + 1)
  return at < 0 ? '/' : path.slice(at)
}

/** As the standard has it, a character for each byte. */
const latin1 = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Buffer.from(value).toString('latin1')]))

/**
 * A Request whose signal is that of its context, which is made when it is first read: to give it to the constructor costs as much as all the rest. So
 * what the library itself makes of the request (`new Request(request)`, `fetch(request)`) does not hear of it.
 */
function requestClass() {
  // Its type has fields where this has accessors.
  const Bare = globalThis.Request as unknown as new (address: string, init: RequestInit) => { clone(): Request }
  class MountedRequest extends Bare {
    readonly #context: RequestContext

    constructor(address: string, init: RequestInit, context: RequestContext) {
      super(address, init)
      this.#context = context
    }

    get signal(): AbortSignal {
      return this.#context.signal
    }

    override clone(): Request {
      return Object.defineProperty(super.clone(), 'signal', { get: () => this.signal })
    }
  }
  return MountedRequest as unknown as new (
    address: string,
    init: RequestInit,
    context: RequestContext,
  ) => Request
}
