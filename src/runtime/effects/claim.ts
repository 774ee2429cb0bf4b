import type { Queryable, Tx } from '../../contracts/db.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { Reply } from '../endpoint/reply.ts'
import type { PluginTransactions } from './plugin-transactions.ts'

export interface ClaimOptions {
  transactions: PluginTransactions
  /** Whose handler answers. */
  plugin: string
  scope: string
  key: string
  /** What the row says as long as it is ours. */
  claim: string
  /** How long the answer is kept, milliseconds. */
  ttlMs: number
}

/** A key that one request has until it is answered. */
export class Claim {
  /** What is stored; null until it is. */
  answer: Reply | null = null
  readonly #options: ClaimOptions

  constructor(options: ClaimOptions) {
    this.#options = options
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
  ): Promise<T> {
    if (this.answer !== null) {
      throw new HeddleError(
        'HTTP_COMMIT_INVALID',
        'context.commit has stored the answer of this request already: one commit has all of its effects',
      )
    }
    const { transactions, plugin } = this.#options
    let answer: Reply | null = null
    const result = await transactions.run(plugin, route, async (tx, own) => {
      const value = await work(tx)
      answer = await replyOf(value)
      if (answer.status >= 500) {
        throw new HeddleError(
          'HTTP_COMMIT_INVALID',
          `The function of context.commit has set the status ${answer.status}, and such an answer is not stored: throw, and nothing is`,
        )
      }
      if (!(await this.#store(own, answer))) throw new HeddleError('HTTP_IDEMPOTENCY_RUNNING', TAKEN_OVER)
      return value
    })
    this.answer = answer
    return result
  }

  /** Stores the answer of a handler that has committed nothing. Does nothing when another request has taken the key over. */
  async store(reply: Reply): Promise<void> {
    await this.#store(await this.#options.transactions.database(), reply)
  }

  /** The next request with the key runs. */
  async giveUp(): Promise<void> {
    const { transactions, scope, key, claim } = this.#options
    await (await transactions.database()).execute(GIVE_UP, [scope, key, claim])
  }

  /** False when the row is not ours any more. */
  async #store(to: Queryable, { status, head, body }: Reply): Promise<boolean> {
    const { scope, key, claim, ttlMs } = this.#options
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const { rowCount } = await to.execute(STORE, [scope, key, claim, status, head, bytes, Date.now() + ttlMs])
    return rowCount === 1
  }
}

const TAKEN_OVER = 'Another request with this Idempotency-Key has taken over, because this one took too long'
const MINE = "WHERE scope = $1 AND key = $2 AND claim = $3 AND state = 'running'"
const STORE = `UPDATE heddle_idempotency SET state = 'done', status = $4, headers = $5, body = $6, expires_ms = $7 ${MINE}`
const GIVE_UP = `DELETE FROM heddle_idempotency ${MINE}`
