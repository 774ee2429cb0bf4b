import type { Data } from '../../contracts/http-request.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { ownScope, scopeOfClaims, scopeOfNobody, scopeOfUser } from '../effects/caller-scope.ts'
import { Claim } from '../effects/claim.ts'
import type { Idempotency } from '../effects/idempotency.ts'
import { identify, readKey } from '../effects/idempotency-key.ts'
import type { PluginTransactions } from '../effects/plugin-transactions.ts'
import type { Answering, Fault } from './answering.ts'
import type { RequestContext } from './context.ts'
import type { Incoming } from './incoming.ts'
import { type Reply, replyOf, replyOfThrown } from './reply.ts'
import { checkResponse, isResponseChecked } from './response-check.ts'
import type { Route } from './run.ts'
import { sessionCookies } from './session-cookies.ts'

/** How long an answer is kept unless the route says otherwise, milliseconds: a day. */
export const IDEMPOTENCY_TTL_MS = 86_400_000

/** What requests need of their thread for effects that happen once. */
export interface RequestEffects {
  transactions: PluginTransactions
  idempotency: Idempotency
  /** HTTP_HANDLER_TIMEOUT_MS. */
  timeoutMs: number
  log: (message: string, plugin: string, fields: Record<string, unknown>) => void
}

const NO_FAULTS: readonly Fault[] = []

/** A result that is an answer already. */
export class ReadyReply {
  readonly reply: Reply
  /** What was thrown meanwhile, for the log. */
  readonly faults: readonly Fault[]

  constructor(reply: Reply, faults = NO_FAULTS) {
    this.reply = reply
    this.faults = faults
  }
}

/** Routes whose handler answers otherwise than what it has stored: each is told of once. */
const told = new WeakSet<Route>()

/**
 * Runs the handler of a route with `idempotency`, unless the answer to its request is stored. What is stored is what the hooks have made of it.
 * @param answering runs the hooks of the route; null where it has none
 * @returns its result, or a ReadyReply
 * @throws what the handler throws; HTTP_IDEMPOTENCY_KEY, HTTP_IDEMPOTENCY_RUNNING, HTTP_IDEMPOTENCY_REUSED
 */
export async function answerOnce(
  route: Route,
  incoming: Incoming,
  data: Data,
  context: RequestContext,
  effects: RequestEffects,
  answering: Answering | null = null,
): Promise<unknown> {
  const { owner, options, template } = route
  const key = readKey(incoming, options.idempotency!)
  if (key === null) return route.handler.call(owner.instance, data, context)
  const cookies = [...sessionCookies]
  const isKnown = options.idempotencyScope !== undefined || context.identified != null
  const scope = `${incoming.method} ${template.text}${callerOf(options, context, data, cookies)}`
  const limits = {
    timeoutMs: options.timeoutMs ?? effects.timeoutMs,
    ttlMs: options.idempotencyTtlMs ?? IDEMPOTENCY_TTL_MS,
  }
  const begun = await effects.idempotency.begin(owner.name, identify(incoming, key, scope), limits)
  if (!(begun instanceof Claim)) return new ReadyReply(begun)
  const replyTo = async (result: unknown): Promise<Reply> => {
    if (answering !== null) return answering.reply(result)
    const reply = replyOf(result, context)
    if (reply.file !== undefined) {
      await reply.file.close()
      throw new HeddleError(
        'HTTP_COMMIT_INVALID',
        'The answer to a request with a key is stored: it cannot be a stream or a file',
      )
    }
    if (isResponseChecked(route)) await checkResponse(route, incoming.method, reply)
    return reply
  }
  context.keyed = { claim: begun, replyTo, cookies: isKnown ? null : cookies }
  let reply: Reply
  try {
    const result = await route.handler.call(owner.instance, data, context)
    // The hooks have seen what was committed.
    if (answering !== null && begun.answer !== null) return new ReadyReply(begun.answer, answering.faults)
    reply = await replyTo(result)
  } catch (thrown) {
    reply = answering === null ? replyOfThrown(thrown, context).reply : await answering.failed(thrown)
    if (reply.status >= 500 || begun.answer === null) {
      await end(begun, reply).catch(() => {
        // The claim ends with its time.
      })
      if (answering !== null) return new ReadyReply(reply, answering.faults)
      throw thrown
    }
  }
  if (begun.answer === null) await end(begun, reply)
  else if (!isSame(begun.answer, reply) && !told.has(route)) {
    told.add(route)
    effects.log(OTHERWISE, owner.name, { route: `${incoming.method} ${template.text}`, request_id: incoming.requestId })
  }
  return new ReadyReply(begun.answer ?? reply, answering?.faults)
}

/** Who gets the stored answer: nobody gets that of somebody else. @param cookies that may hold a session */
function callerOf(
  { authValidator, idempotencyScope }: Route['options'],
  context: RequestContext,
  data: Data,
  cookies: readonly string[],
): string {
  if (idempotencyScope !== undefined) {
    const scope: unknown = idempotencyScope(context)
    if (typeof scope === 'string') return ownScope(scope)
    throw new HeddleError('HTTP_HOOK_INVALID', `idempotencyScope must return a text, not ${String(scope)}`)
  }
  const user = context.identified == null ? '' : scopeOfUser(context.identified.id)
  if (authValidator !== undefined) return user + scopeOfClaims(data._auth as object, context, cookies)
  return user === '' ? scopeOfNobody(context, cookies) : user
}

const OTHERWISE =
  'A handler answers otherwise than what context.commit has stored. The stored answer is sent: return what the function of context.commit ' +
  'returns, and set status, headers and cookies before its end. This is told once for each route'

/** Of a handler that has committed nothing. An answer that asks to try again later must not be all that the client ever gets. */
async function end(claim: Claim, reply: Reply): Promise<void> {
  if (claim.answer !== null) return
  const isLater = reply.status === 429 || /^retry-after: /m.test(reply.head)
  if (isLater || reply.status >= 500) await claim.giveUp()
  else await claim.store(reply)
}

function isSame(stored: Reply, { status, head, body }: Reply): boolean {
  if (stored.status !== status || stored.head !== head) return false
  if (typeof stored.body === 'string' || typeof body === 'string') return stored.body === body
  return stored.body === null || body === null ? stored.body === body : Buffer.compare(stored.body, body) === 0
}
