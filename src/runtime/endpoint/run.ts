// From a request of an endpoint to its answer: plainly, or by the one way of everything that is not plain.
import type { Data } from '../../contracts/http-request.ts'
import type { CausalContext, CodeTracing, OpenSpan, Work } from '../../contracts/tracing.ts'
import { causality } from '../../core/causality/context.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { hasLine } from '../../core/http/http-error.ts'
import { isThenable } from '../../core/schedule/waiting.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import { Answering, type FaultLog, isResponseChecked } from './answering.ts'
import type { RequestContext } from './context.ts'
import { tagged } from './encodings.ts'
import { answerOnce } from './idempotency.ts'
import { readInput } from './input/input.ts'
import { type Reply, replyOf, replyOfThrown } from './reply.ts'
import type { RequestThread } from './request-thread.ts'
import type { ServedEndpoint, ServedRoute } from './route.ts'
import { StreamBody } from './stream/body-source.ts'

/** Of the code of a handler. Its span is open until the request is answered. */
interface RequestCause extends CausalContext {
  readonly trace: OpenSpan | null
}

/**
 * Runs one request through its route: authentication, input, handler, reply. Never throws or rejects.
 * A handler that is not async, on a route with nothing to await, answers without a single promise.
 */
export function runRequest(
  thread: RequestThread,
  route: ServedEndpoint,
  frame: RequestFrame,
  context: RequestContext,
): Reply | Promise<Reply> {
  const { tracing, onFault } = thread
  const span = tracing === null ? null : openSpan(tracing, route, frame)
  const cause = { eventId: null, requestId: frame.requestId, trace: span, origin: route.origin, request: context }
  if (!isPlain(route)) return answerByAll(thread, route, frame, context, cause)
  try {
    const outcome = causality.run(cause, handle, thread, route, frame, context)
    if (isThenable(outcome)) return answerLater(outcome, route, context, onFault, cause)
    const reply = replyOf(outcome, context)
    // A stream is answered when its first chunk is there.
    if (reply.file !== undefined) return answerLater(reply, route, context, onFault, cause)
    return done(reply, route, context, span)
  } catch (thrown) {
    return refuse(thrown, context, onFault, span)
  }
}

/** No token, hooks, key, or check of the answer: nothing stands between its input and its handler. */
function isPlain(route: ServedEndpoint): boolean {
  const { hooks, options } = route
  return (
    hooks === null &&
    options.authValidator === undefined &&
    options.idempotency === undefined &&
    !isResponseChecked(route)
  )
}

function handle(thread: RequestThread, route: ServedEndpoint, frame: RequestFrame, context: RequestContext): unknown {
  const data = readInput(frame, route, context)
  return data instanceof Promise ? handleLater(thread, route, data, context) : callCode(thread, route, data, context)
}

async function handleLater(
  thread: RequestThread,
  route: ServedEndpoint,
  data: Promise<Data>,
  context: RequestContext,
): Promise<unknown> {
  return callCode(thread, route, await data, context)
}

const NOT_RUN = 'A plugin has replaced a builtin in this lane, so the handler was not run'

/** Runs the code of a plugin. @throws HTTP_INTERNAL where builtins were replaced before it */
function callCode(thread: RequestThread, route: ServedEndpoint, data: Data, context: RequestContext): unknown {
  if (!thread.isSound()) throw new HeddleError('HTTP_INTERNAL', NOT_RUN)
  try {
    return route.handler.call(route.owner.instance, data, context)
  } finally {
    thread.isSound(route.origin)
  }
}

/** @param outcome a promise of what the handler returns, or a reply with a body in pieces */
async function answerLater(
  outcome: Promise<unknown> | Reply,
  route: ServedEndpoint,
  context: RequestContext,
  onFault: FaultLog,
  cause: RequestCause,
): Promise<Reply> {
  try {
    const reply = isThenable(outcome) ? replyOf(await outcome, context) : (outcome as Reply)
    if (reply.file instanceof StreamBody) await beginStream(reply, reply.file, context, cause)
    return done(reply, route, context, cause.trace)
  } catch (thrown) {
    return refuse(thrown, context, onFault, cause.trace)
  }
}

async function answerByAll(
  thread: RequestThread,
  route: ServedEndpoint,
  frame: RequestFrame,
  context: RequestContext,
  cause: RequestCause,
): Promise<Reply> {
  const span = cause.trace
  const { onFault, effects } = thread
  try {
    const answering = new Answering(route, frame, context)
    const code = (data: Data): unknown => callCode(thread, route, data, context)
    const once =
      route.options.idempotency === undefined
        ? null
        : (data: Data) => answerOnce(route, frame, data, context, effects, answering)
    const reply = await causality.run(cause, () => answering.answer(code, once))
    const [first] = answering.faults
    answering.tellFaults(onFault)
    if (first !== undefined) {
      span?.answered?.(reply)
      span?.fail(first.thrown)
      return reply
    }
    if (reply.file instanceof StreamBody) await beginStream(reply, reply.file, context, cause)
    return done(reply, route, context, span)
  } catch (thrown) {
    return refuse(thrown, context, onFault, span)
  }
}

/** Nobody on the way keeps the events of a stream, or gathers them. */
const LIVE = 'cache-control: no-cache, no-transform\r\nx-accel-buffering: no\r\n'

/** Waits for the first chunk. What is thrown before it is answered like what a handler throws. */
async function beginStream(reply: Reply, body: StreamBody, context: RequestContext, cause: RequestCause) {
  body.cause = cause
  context.signal.addEventListener('abort', () => body.close())
  const type = await body.begin()
  // A generator has begun only now: what it has set belongs to the answer.
  const { head } = context
  reply.head = hasLine(head, 'content-type') ? head : `${head}content-type: ${type}\r\n`
  if (body.isOfEvents && !hasLine(head, 'cache-control')) reply.head += LIVE
  // Tells the browser to come back no more.
  reply.status = body.hasNoEvent ? 204 : context.chosenStatus || reply.status
  if (reply.status !== 204 && reply.status !== 304) return
  body.close()
  delete reply.file
}

export function openSpan(tracing: CodeTracing, route: ServedRoute, frame: RequestFrame): OpenSpan {
  const { trace, requestId, key } = frame
  const work: Work = { kind: 'request', requestId, key, eventId: null, request: frame, route }
  return tracing.open(trace, route.name, route.spanAttributes, work)
}

function done(reply: Reply, route: ServedEndpoint, context: RequestContext, span: OpenSpan | null): Reply {
  if (span !== null) {
    span.answered?.(reply)
    span.end()
  }
  return route.options.etag === true ? tagged(reply, context) : reply
}

function refuse(thrown: unknown, context: RequestContext, onFault: FaultLog, span: OpenSpan | null): Reply {
  const { reply, isFault } = replyOfThrown(thrown, context)
  span?.answered?.(reply)
  // A mistake of the client is no fault of the handler.
  if (isFault) {
    span?.fail(thrown)
    onFault(context.route, context.plugin, context.requestId, thrown)
  } else span?.end()
  return reply
}
