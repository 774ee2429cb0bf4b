import type { Data } from '../../contracts/http-request.ts'
import { Answering } from './answering.ts'
import type { RequestContext } from './context.ts'
import { answerOnce, ReadyReply } from './idempotency.ts'
import type { Incoming } from './incoming.ts'
import { readInput } from './input/input.ts'
import type { HookChain } from './route.ts'
import type { Route } from './run.ts'

/** The claims of the request's token; undefined on a route without `authValidator`. */
export type ReadClaims = () => Promise<object | undefined> | undefined

/** Runs a request of a route with hooks: token, guards, input, handler, and the hooks behind it. Never rejects. */
export async function handleGuarded(
  route: Route,
  hooks: HookChain,
  incoming: Incoming,
  context: RequestContext,
  readClaims: ReadClaims,
): Promise<ReadyReply> {
  const answering = new Answering(route, hooks, incoming, context)
  const { owner, handler, options, template } = route
  try {
    const claims = await readClaims()
    const guarded = await answering.before(claims)
    let result: unknown
    if (guarded.isAnswered) result = guarded.result
    else {
      const data = await readInput(incoming, template, options, context)
      if (claims !== undefined) data._auth = claims
      const { effects } = context
      if (options.idempotency !== undefined && effects !== null) {
        result = await answerOnce(route, incoming, data, context, effects, answering)
        if (result instanceof ReadyReply) return result
      } else result = await handler.call(owner.instance, data, context)
    }
    return new ReadyReply(await answering.reply(result), answering.faults)
  } catch (thrown) {
    return new ReadyReply(await answering.failed(thrown), answering.faults)
  }
}

/** The input of a stream or a WebSocket with hooks, or the answer that refuses it. Never rejects. */
export async function openGuarded(
  route: Pick<Route, 'owner' | 'options' | 'template'>,
  hooks: HookChain,
  incoming: Incoming,
  context: RequestContext,
  readClaims: ReadClaims,
): Promise<Data | ReadyReply> {
  const answering = new Answering(route, hooks, incoming, context)
  try {
    const claims = await readClaims()
    const guarded = await answering.before(claims)
    if (guarded.isAnswered) return new ReadyReply(await answering.reply(guarded.result), answering.faults)
    const data = await readInput(incoming, route.template, route.options, context)
    if (claims !== undefined) data._auth = claims
    return data
  } catch (thrown) {
    return new ReadyReply(await answering.failed(thrown), answering.faults)
  }
}
