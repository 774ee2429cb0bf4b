import type { Handler } from '../../contracts/http.ts'
import type { AuthValidator, Data, EndpointOptions } from '../../contracts/http-request.ts'
import type { Owner } from '../../contracts/owner.ts'
import type { BodyKind } from '../../contracts/request-body.ts'
import type { StandardSchemaV1 } from '../../contracts/standard-schema.ts'
import type { CodeTracing, OpenSpan, SpanAttributes, Work } from '../../contracts/tracing.ts'
import { type CausalContext, causality, type Origin } from '../../core/causality/context.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { RequestContext } from './context.ts'
import { tagged } from './encodings.ts'
import { handleGuarded } from './guarded.ts'
import { answerOnce, ReadyReply, type RequestEffects } from './idempotency.ts'
import type { Incoming } from './incoming.ts'
import { readInput } from './input/input.ts'
import { type Reply, replyOf, replyOfThrown } from './reply.ts'
import { checkResponse, isResponseChecked } from './response-check.ts'
import type { HookChain, PathTemplate } from './route.ts'
import { StreamBody } from './stream/body-source.ts'

/** The options of a route whose body is validated, or left alone. */
export type RouteOptions = Omit<EndpointOptions, 'body'> & { body?: StandardSchemaV1 }

/** A route with its handler, and everything that happens before the handler. */
export interface Route {
  owner: Owner
  /** What its handler makes carries this on. */
  origin: Origin
  template: PathTemplate
  handler: Handler
  options: RouteOptions
  /** How its handler reads a body while it comes; null when it gets the whole body. */
  bodyKind: BodyKind | null
  /** `<plugin>.<handler>`: what its spans are called. */
  name: string
  /** Attributes of each of its spans. */
  spanAttributes: SpanAttributes
  /** Null when it has none. */
  hooks: HookChain | null
}

/** Of the code of a handler. Its span is open until the request is answered. */
interface RequestCause extends CausalContext {
  readonly trace: OpenSpan | null
}

/** A route, as the log names it. */
export interface FaultyRoute {
  readonly template: { readonly text: string }
  readonly owner: { readonly name: string }
}

/**
 * Told of an error that a handler has thrown: it goes to the log, never to the client.
 * @param where which hook has thrown it; empty for the handler
 */
export type FaultLog = (route: FaultyRoute, requestId: string, thrown: unknown, where: string) => void

/**
 * Runs one request through its route: authentication, input, handler, reply. Never throws or rejects.
 * A handler that is not async, on a route with nothing to await, answers without a single promise.
 */
export function runRequest(
  route: Route,
  incoming: Incoming,
  context: RequestContext,
  onFault: FaultLog,
  tracing: CodeTracing | null,
): Reply | Promise<Reply> {
  const span = tracing === null ? null : openSpan(tracing, route, incoming)
  try {
    const cause = { eventId: null, requestId: incoming.requestId, trace: span, origin: route.origin, request: context }
    const outcome = causality.run(cause, route.hooks === null ? handle : handleHooked, route, incoming, context)
    if (isPromise(outcome) || isResponseChecked(route)) return finish(outcome, route, context, onFault, cause)
    const reply = replyOf(outcome, context)
    // A stream is answered when its first chunk is there.
    if (reply.file !== undefined) return finish(new ReadyReply(reply), route, context, onFault, cause)
    endSpan(span, reply)
    return route.options.etag === true ? tagged(reply, context) : reply
  } catch (thrown) {
    return refuse(thrown, route, context, onFault, span)
  }
}

/** Waits for the first chunk. What is thrown before it is answered like what a handler throws. */
async function beginStream(reply: Reply, body: StreamBody, context: RequestContext, cause: RequestCause) {
  body.cause = cause
  context.signal.addEventListener('abort', () => body.close())
  const type = await body.begin()
  // A generator has begun only now: what it has set belongs to the answer.
  reply.head = context.hasContentType ? context.head : `${context.head}content-type: ${type}\r\n`
  reply.status = context.chosenStatus || reply.status
  if (reply.status !== 204 && reply.status !== 304) return
  body.close()
  delete reply.file
}

export function openSpan(tracing: CodeTracing, route: Route, incoming: Incoming): OpenSpan {
  const { trace, requestId, key } = incoming
  const work: Work = { kind: 'request', requestId, key, eventId: null, request: incoming, route }
  return tracing.open(trace, route.name, route.spanAttributes, work)
}

function endSpan(span: OpenSpan | null, reply: Reply): void {
  if (span === null) return
  span.answered?.(reply)
  span.end()
}

function handle(route: Route, incoming: Incoming, context: RequestContext): unknown {
  const { authValidator, idempotency } = route.options
  if (idempotency !== undefined && context.effects !== null)
    return handleOnce(route, incoming, context, context.effects)
  if (authValidator !== undefined) return handleAuthenticated(authValidator, route, incoming, context)
  const data = readInput(incoming, route.template, route.options, context)
  if (isPromise(data)) return data.then((ready) => route.handler.call(route.owner.instance, ready as Data, context))
  return route.handler.call(route.owner.instance, data, context)
}

function handleHooked(route: Route, incoming: Incoming, context: RequestContext): Promise<ReadyReply> {
  return handleGuarded(route, route.hooks!, incoming, context, () => readClaims(route, incoming, context))
}

/** The claims of the request's token; undefined on a route that wants none. */
export function readClaims(
  { options }: Pick<Route, 'options'>,
  incoming: Incoming,
  context: RequestContext,
): Promise<object> | undefined {
  const { authValidator } = options
  return authValidator && authenticate(authValidator, bearerToken(incoming), incoming, context)
}

async function handleAuthenticated(
  authValidator: AuthValidator,
  route: Route,
  incoming: Incoming,
  context: RequestContext,
): Promise<unknown> {
  const claims = await authenticate(authValidator, bearerToken(incoming), incoming, context)
  const data = await readInput(incoming, route.template, route.options, context)
  data._auth = claims
  return route.handler.call(route.owner.instance, data, context)
}

async function handleOnce(
  route: Route,
  incoming: Incoming,
  context: RequestContext,
  effects: RequestEffects,
): Promise<unknown> {
  const claims = await readClaims(route, incoming, context)
  const data = await readInput(incoming, route.template, route.options, context)
  if (claims !== undefined) data._auth = claims
  return answerOnce(route, incoming, data, context, effects)
}

/** @throws HTTP_AUTH_MISSING, HTTP_AUTH_INVALID */
export async function authenticate(
  authValidator: AuthValidator,
  token: string | undefined,
  incoming: Incoming,
  context: RequestContext,
): Promise<object> {
  const claims = await checkToken(authValidator, token)
  incoming.claims = claims
  context.token = claims
  return claims
}

/** The token of the `authorization` header. Source: RFC 6750, section 2.1. */
export function bearerToken(incoming: Incoming): string | undefined {
  const authorization = incoming.header('authorization')
  return authorization === undefined ? undefined : /^Bearer +([^\s]+)$/i.exec(authorization)?.[1]
}

async function checkToken(authValidator: AuthValidator, token: string | undefined): Promise<object> {
  if (token === undefined) throw new HeddleError('HTTP_AUTH_MISSING')
  const claims: unknown = await authValidator(token)
  // A validator that returns `false` must not let anybody in: only an object means yes.
  if (typeof claims !== 'object' || claims === null) throw new HeddleError('HTTP_AUTH_INVALID')
  return claims
}

async function finish(
  outcome: unknown,
  route: Route,
  context: RequestContext,
  onFault: FaultLog,
  cause: RequestCause,
): Promise<Reply> {
  const span = cause.trace
  try {
    const result = await outcome
    const isReady = result instanceof ReadyReply
    if (isReady && result.faults.length > 0) {
      for (const { thrown, where } of result.faults) onFault(route, context.requestId, thrown, where)
      span?.answered?.(result.reply)
      span?.fail(result.faults[0]!.thrown)
      return result.reply
    }
    const reply = isReady ? result.reply : replyOf(result, context)
    if (!isReady && isResponseChecked(route)) await checkResponse(route, context.method, reply)
    if (reply.file instanceof StreamBody) await beginStream(reply, reply.file, context, cause)
    endSpan(span, reply)
    return route.options.etag === true ? tagged(reply, context) : reply
  } catch (thrown) {
    return refuse(thrown, route, context, onFault, span)
  }
}

function refuse(
  thrown: unknown,
  route: Route,
  context: RequestContext,
  onFault: FaultLog,
  span: OpenSpan | null,
): Reply {
  const { reply, isFault } = replyOfThrown(thrown, context)
  // A mistake of the client is no fault of the handler.
  if (!isFault) {
    endSpan(span, reply)
    return reply
  }
  span?.answered?.(reply)
  span?.fail(thrown)
  onFault(route, context.requestId, thrown, '')
  return reply
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
