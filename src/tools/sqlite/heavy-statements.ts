import { threadId } from 'node:worker_threads'
import type { SqlValue } from '../../contracts/db.ts'
import { DbError } from '../../core/errors/db-error.ts'
import type { Outcome } from '../../stores/sql/outcome.ts'
import type { Connection } from './connection.ts'
import { type Answer, type Order, outcomeOf, packParams } from './process-messages.ts'
import type { TransactionSession } from './transaction.ts'

export type SendOrder = (order: Order) => Promise<Answer>

/** Runs one statement by itself where it can be ended. @throws DbError */
export async function runHeavy(
  send: SendOrder,
  sql: string,
  params: readonly SqlValue[],
  writes: boolean,
): Promise<Outcome> {
  return outcomeOf(await send({ threadId, session: null, action: 'run', writes, sql, params: packParams(params) }))
}

/** A transaction in this thread, up to its first heavy statement: with that one it begins again in a process. */
export class LaneSession implements TransactionSession {
  readonly #connection: Connection
  mustMove = false

  /** @param connection on which the transaction has begun */
  constructor(connection: Connection) {
    this.#connection = connection
  }

  run(sql: string, params: readonly SqlValue[]): Outcome {
    const statement = this.#connection.statement(sql)
    if (statement.isHeavy(params)) {
      this.mustMove = true
      throw new DbError('serialization', 'The transaction begins again where its long statement can be ended')
    }
    return this.#connection.runStatement(statement, params)
  }

  commit(): void {
    this.#connection.commit()
  }

  rollback(): void {
    this.#connection.rollback()
  }
}

/** A transaction in a process for heavy statements. Its statements run one after another. */
export class ProcessSession implements TransactionSession {
  readonly mustMove = false
  readonly #send: SendOrder
  readonly #id: number
  #last: Promise<unknown> = Promise.resolve()
  #failure: unknown

  private constructor(send: SendOrder, id: number) {
    this.#send = send
    this.#id = id
  }

  /** @throws DbError */
  static async begin(send: SendOrder): Promise<ProcessSession> {
    const answer = await send({ threadId, session: null, action: 'begin', writes: true })
    outcomeOf(answer)
    return new ProcessSession(send, answer.session!)
  }

  run(sql: string, params: readonly SqlValue[]): Promise<Outcome> {
    return this.#next('run', { sql, params: packParams(params) })
  }

  async commit(): Promise<void> {
    await this.#next('commit', {})
  }

  async rollback(): Promise<void> {
    this.#failure = undefined
    await this.#next('rollback', {})
  }

  #next(action: Order['action'], statement: Pick<Order, 'sql' | 'params'>): Promise<Outcome> {
    const result = this.#last.then(async () => {
      if (this.#failure !== undefined) throw this.#failure
      return outcomeOf(await this.#send({ threadId, session: this.#id, action, writes: true, ...statement }))
    })
    this.#last = result.catch((thrown) => {
      this.#failure ??= thrown
    })
    return result
  }
}
