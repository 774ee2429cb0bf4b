// Answers that are kept by key: read, claimed, run once, stored.
import { createHash, createHmac } from 'node:crypto'
import { threadId } from 'node:worker_threads'
import type { Queryable, TransactionOptions, Tx } from '../../contracts/db.ts'
import type { Data } from '../../contracts/http-request.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { hasLine } from '../../core/http/http-error.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import type { ClaimMemory } from '../../transport/memory/claim-memory.ts'
import type { PluginTransactions } from '../effects/transactions.ts'
import type { StoreDatabase } from '../event-store/database.ts'
import type { Answering } from './answering.ts'
import type { RequestContext } from './context.ts'
import { sessionCookies } from './cookies.ts'
import type { Reply } from './reply.ts'
import type { ServedEndpoint } from './route.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** A text of a caller that is stored as it is, characters at most. */
const TEXT_MAX = 200

const short = (text: string): string => (text.length <= TEXT_MAX ? text : digest(text))
const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')

const KEY = /^[\x21-\x7e]{1,255}$/

/** A request with a key, and the row that its answer is stored in. */
interface KeyedRequest {
  /** Whose handler answers. */
  readonly plugin: string
  /** The route, and who asks. */
  readonly scope: string
  /** A digest of the key. The key itself is not stored. */
  readonly key: string
  /** What the request asks for: a digest that only who has the key can compute. The body may hold a password. */
  readonly print: string
  /** The route's time for a request. */
  readonly timeoutMs: number
  /** How long the answer is kept, milliseconds. */
  readonly ttlMs: number
}

/**
 * The value of the header `idempotency-key`; null when there is none.
 * Source: draft-ietf-httpapi-idempotency-key-header. Quotes are part of the key.
 * @throws HTTP_IDEMPOTENCY_KEY when it is malformed, or missing and required
 */
function readKey({ headers }: RequestFrame, wanted: 'optional' | 'required'): string | null {
  const key = headers['idempotency-key']
  if (key === undefined) {
    if (wanted === 'optional') return null
    throw new HeddleError('HTTP_IDEMPOTENCY_KEY', 'This route requires the header Idempotency-Key')
  }
  if (KEY.test(key)) return key
  throw new HeddleError('HTTP_IDEMPOTENCY_KEY', 'Idempotency-Key must be 1 to 255 visible ASCII characters')
}

function printOf({ path, query, headers, body }: RequestFrame, key: string): string {
  const hash = createHmac('sha256', key).update(toJson([path, query, headers['content-type'] ?? '']))
  if (body !== null) hash.update(body)
  return hash.digest('base64url')
}

/** A key that one request has until it is answered. */
export class Claim {
  /** What is stored; null until it is. */
  answer: Reply | null = null
  readonly #transactions: PluginTransactions
  readonly #request: KeyedRequest
  /** What the row says as long as it is ours. */
  readonly #claim: string

  constructor(transactions: PluginTransactions, request: KeyedRequest, claim: string) {
    this.#transactions = transactions
    this.#request = request
    this.#claim = claim
  }

  /**
   * Runs the function of `context.commit` in a transaction that stores the answer, too.
   * @param route whose function `work` calls
   * @param replyOf the answer that the result of `work` means
   * @throws HTTP_COMMIT_INVALID, HTTP_IDEMPOTENCY_RUNNING when another request has taken the key over, and what `work` and the database throw
   */
  async commit<T>(
    route: string,
    work: (tx: Tx) => Promise<T>,
    replyOf: (result: T) => Reply | Promise<Reply>,
    options?: TransactionOptions,
  ): Promise<T> {
    if (this.answer !== null) {
      throw commitInvalid(
        'context.commit has stored the answer of this request already: one commit has all of its effects',
      )
    }
    let answer: Reply | null = null
    const commit = async (tx: Tx, own: Queryable): Promise<T> => {
      const value = await work(tx)
      answer = await replyOf(value)
      if (answer.status >= 500) {
        throw commitInvalid(
          `The function of context.commit has set the status ${answer.status}, and such an answer is not stored: throw, and nothing is`,
        )
      }
      if (!(await this.#store(own, answer))) throw new HeddleError('HTTP_IDEMPOTENCY_RUNNING', TAKEN_OVER)
      return value
    }
    const result = await this.#transactions.run(this.#request.plugin, route, commit, options)
    this.answer = answer
    return result
  }

  /** Stores the answer of a handler that has committed nothing. Does nothing when another request has taken the key over. */
  async store(reply: Reply): Promise<void> {
    await this.#store(await this.#transactions.database(), reply)
  }

  /** The next request with the key runs. */
  async giveUp(): Promise<void> {
    const { scope, key } = this.#request
    await (await this.#transactions.database()).execute(GIVE_UP, [scope, key, this.#claim])
  }

  /** False when the row is not ours any more. */
  async #store(to: Queryable, { status, head, body }: Reply): Promise<boolean> {
    const { scope, key, ttlMs } = this.#request
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const { rowCount } = await to.execute(STORE, [scope, key, this.#claim, status, head, bytes, Date.now() + ttlMs])
    return rowCount === 1
  }
}

const commitInvalid = (why: string): HeddleError => new HeddleError('HTTP_COMMIT_INVALID', why)

const TAKEN_OVER = 'Another request with this Idempotency-Key has taken over, because this one took too long'
const MINE = "WHERE scope = $1 AND key = $2 AND claim = $3 AND state = 'running'"
const STORE = `UPDATE heddle_idempotency SET state = 'done', status = $4, headers = $5, body = $6, expires_ms = $7 ${MINE}`
const GIVE_UP = `DELETE FROM heddle_idempotency ${MINE}`

/** How much longer than its route's limit a request may take before another takes its key over, milliseconds. */
const CLAIM_MARGIN_MS = 5000
/** Attempts at a key that others claim and give up at the same time. */
const ATTEMPTS = 8

/** A row of `heddle_idempotency`. */
interface Row {
  print: string
  claim: string
  state: 'running' | 'done'
  status: number | null
  headers: string | null
  body: Uint8Array | null
}

/**
 * Answers of requests that came with an `Idempotency-Key`. A row is claimed before the handler runs, and has the answer from the commit of the
 * handler's effects on.
 *
 * A claim names its process and thread. It is taken over when these are gone, and, where nobody here can know that (a process of another
 * replica), when its time is up. Whoever held it before finds that out in its own transaction, which is then rolled back.
 */
export class Idempotency {
  readonly #transactions: PluginTransactions
  readonly #memory: ClaimMemory
  readonly #replicaId: string
  #claims = 0

  /** @param replicaId REPLICA_ID */
  constructor(transactions: PluginTransactions, memory: ClaimMemory, replicaId: string) {
    this.#transactions = transactions
    this.#memory = memory
    this.#replicaId = replicaId
  }

  /**
   * @returns a claim: the handler is to answer; or the answer that is stored
   * @throws HTTP_IDEMPOTENCY_RUNNING, HTTP_IDEMPOTENCY_REUSED, and whatever the database rejects with
   */
  async begin(request: KeyedRequest): Promise<Claim | Reply> {
    const { scope, key, print, timeoutMs } = request
    const database = await this.#transactions.database()
    const claim = `${this.#memory.process} ${threadId} ${++this.#claims} ${this.#replicaId}`
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const nowMs = Date.now()
      const expiresMs = nowMs + timeoutMs + CLAIM_MARGIN_MS
      const { rowCount } = await database.execute(CLAIM, [scope, key, print, claim, expiresMs, nowMs])
      if (rowCount === 1) return new Claim(this.#transactions, request, claim)
      const row = await database.queryOne<Row>(READ, [scope, key])
      // Given up meanwhile.
      if (row === null) continue
      if (row.state === 'running' && this.#isDead(row.claim, database.dialect)) {
        await database.execute(GIVE_UP, [scope, key, row.claim])
        continue
      }
      if (row.print !== print) throw new HeddleError('HTTP_IDEMPOTENCY_REUSED')
      if (row.state === 'done') return replayOf(row)
      break
    }
    throw new HeddleError('HTTP_IDEMPOTENCY_RUNNING')
  }

  #isDead(claim: string, dialect: StoreDatabase['dialect']): boolean {
    const [process, thread, , replicaId] = /^(\S+) (\S+) (\S+) (.*)$/s.exec(claim)?.slice(1) ?? []
    if (process === this.#memory.process) return this.#memory.isGone(Number(thread))
    // One process has the file at a time, and one has the replica's id.
    return dialect === 'sqlite' || replicaId === this.#replicaId
  }
}

function replayOf({ status, headers, body }: Row): Reply {
  return { status: Number(status), head: `${headers ?? ''}idempotency-replayed: true\r\n`, body }
}

const CLAIM = `INSERT INTO heddle_idempotency (scope, key, print, claim, state, expires_ms) VALUES ($1, $2, $3, $4, 'running', $5)
  ON CONFLICT (scope, key) DO UPDATE SET print = $3, claim = $4, state = 'running', status = NULL, headers = NULL, body = NULL, expires_ms = $5
  WHERE heddle_idempotency.expires_ms <= $6`
const READ = 'SELECT print, claim, state, status, headers, body FROM heddle_idempotency WHERE scope = $1 AND key = $2'

/** How long an answer is kept unless the route says otherwise, milliseconds: a day. */
const IDEMPOTENCY_TTL_MS = 86_400_000

/** What requests need of their thread for effects that happen once. */
export interface RequestEffects {
  transactions: PluginTransactions
  idempotency: Idempotency
  /** HTTP_HANDLER_TIMEOUT_MS. */
  timeoutMs: number
  log: (message: string, plugin: string, fields: Record<string, unknown>) => void
}

/** Routes whose handler answers otherwise than what it has stored: each is told of once. */
const told = new WeakSet<ServedEndpoint>()

/**
 * Runs the handler of a route with `idempotency`, unless the answer to its request is stored. What is stored is what the hooks have made of it.
 * @throws HTTP_IDEMPOTENCY_KEY, HTTP_IDEMPOTENCY_RUNNING, HTTP_IDEMPOTENCY_REUSED
 */
export async function answerOnce(
  route: ServedEndpoint,
  frame: RequestFrame,
  data: Data,
  context: RequestContext,
  effects: RequestEffects,
  answering: Answering,
): Promise<Reply> {
  const { owner, options, template } = route
  const key = readKey(frame, options.idempotency!)
  if (key === null) return answering.reply(await route.handler.call(owner.instance, data, context))
  const cookies = [...sessionCookies]
  const isKnown = options.idempotencyScope !== undefined || context.identified != null
  const begun = await effects.idempotency.begin({
    plugin: owner.name,
    scope: `${frame.method} ${template.text}${callerOf(options, context, data, cookies)}`,
    key: digest(key),
    print: printOf(frame, key),
    timeoutMs: context.limitMs,
    ttlMs: options.idempotencyTtlMs ?? IDEMPOTENCY_TTL_MS,
  })
  if (!(begun instanceof Claim)) return begun
  const replyTo = async (result: unknown): Promise<Reply> => {
    const reply = await answering.reply(result)
    if (reply.file === undefined) return reply
    await reply.file.close()
    throw commitInvalid('The answer to a request with a key is stored: it cannot be a stream or a file')
  }
  context.keyed = { claim: begun, replyTo, cookies: isKnown ? null : cookies }
  let reply: Reply
  try {
    const result = await route.handler.call(owner.instance, data, context)
    // The hooks have seen what was committed.
    if (answering.hasHooks && begun.answer !== null) return begun.answer
    reply = await replyTo(result)
  } catch (thrown) {
    reply = await answering.failed(thrown)
    if (reply.status >= 500 || begun.answer === null) {
      await end(begun, reply).catch(() => {
        // The claim ends with its time.
      })
      return reply
    }
  }
  if (begun.answer === null) await end(begun, reply)
  else if (!isSame(begun.answer, reply) && !told.has(route)) {
    told.add(route)
    effects.log(OTHERWISE, owner.name, { route: `${frame.method} ${template.text}`, request_id: frame.requestId })
  }
  return begun.answer ?? reply
}

/**
 * Whose a stored answer is: nobody gets that of somebody else. Where nobody is known, it is of whoever has the same credentials, which a handler
 * may read; without any it is everybody's who knows the key.
 * @param names of the cookies that may hold a session
 */
function callerOf(
  { authValidator, idempotencyScope }: ServedEndpoint['options'],
  context: RequestContext,
  data: Data,
  names: readonly string[],
): string {
  if (idempotencyScope !== undefined) {
    const scope: unknown = idempotencyScope(context)
    if (typeof scope === 'string') return ` scope ${short(toJson(scope))}`
    throw new HeddleError('HTTP_HOOK_INVALID', `idempotencyScope must return a text, not ${String(scope)}`)
  }
  const user = context.identified == null ? '' : ` user ${short(toJson(context.identified.id))}`
  if (authValidator === undefined && user !== '') return user
  const { headers, cookies } = context
  const { authorization = '' } = headers
  let token = authorization === '' ? '' : ` authorization ${digest(authorization)}`
  if (authValidator !== undefined) {
    // One token may be that of many users, whom their sessions tell apart.
    const { iss, sub } = data._auth as { iss?: unknown; sub?: unknown }
    token = sub == null ? ` token ${digest(authorization)}` : ` ${short(toJson([iss ?? null, sub]))}`
  }
  const held = names.flatMap((name) => (cookies[name] === undefined ? [] : [[name, cookies[name]]]))
  return user + token + (held.length === 0 ? '' : ` session ${digest(toJson(held))}`)
}

const OTHERWISE =
  'A handler answers otherwise than what context.commit has stored. The stored answer is sent: return what the function of context.commit ' +
  'returns, and set status, headers and cookies before its end. This is told once for each route'

/** Of a handler that has committed nothing. An answer that asks to try again later must not be all that the client ever gets. */
async function end(claim: Claim, reply: Reply): Promise<void> {
  if (claim.answer !== null) return
  const isLater = reply.status === 429 || hasLine(reply.head, 'retry-after')
  if (isLater || reply.status >= 500) await claim.giveUp()
  else await claim.store(reply)
}

function isSame(stored: Reply, { status, head, body }: Reply): boolean {
  if (stored.status !== status || stored.head !== head) return false
  if (typeof stored.body === 'string' || typeof body === 'string') return stored.body === body
  return stored.body === null || body === null ? stored.body === body : Buffer.compare(stored.body, body) === 0
}
