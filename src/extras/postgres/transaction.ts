// One transaction on a connection.
import type { Queryable, Sql, TransactionCompanion } from '../../contracts/db.ts'
import type { ToolRuntime } from '../../contracts/tool.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { isInstance } from '../../core/errors/description.ts'
import { valuesOf } from '../../core/sql/fragment.ts'
import { type Outcome, queryable, READ_ONLY, TRANSACTION_IDLE_MS } from '../../stores/sql/database.ts'
import { idleTransactionRefused, refuseInTransaction } from '../../stores/sql/statement.ts'
import type { PostgresConnection } from './connection.ts'
import { hasNotRun, isStalePlan, READ_ONLY_STATE, sqlStateOf, toDbError } from './failure.ts'
import { COMMIT, type Statements } from './statement.ts'

/** The database rolled the transaction back although its statements were right: it may be repeated. */
export class Repeatable extends Error {
  /** The error that the caller gets when the transaction is not repeated. */
  readonly failure: DbError
  readonly isStalePlan: boolean
  /** The connection had ended before the first statement ran. */
  readonly isLost: boolean

  constructor(failure: DbError, isLost = false) {
    super(failure.message)
    this.failure = failure
    this.isLost = isLost
    this.isStalePlan = isStalePlan(failure.cause)
  }
}

/**
 * Runs `work` in the transaction that has begun on the connection, and ends it. @param statements those that the thread knows
 *
 * Statements run in the order in which they were sent, one at a time. When one fails, further ones are refused and the transaction is
 * rolled back, even when `work` caught the error.
 * @throws what `work` rejects with, DbError, or Repeatable
 */
export async function runTransaction<T>(
  work: (tx: Queryable) => Promise<T>,
  connection: PostgresConnection,
  statements: Statements,
  companion: TransactionCompanion | undefined,
  instrument: ToolRuntime['instrument'],
  isReadOnly = false,
): Promise<T> {
  let isOver = false
  let failure: DbError | null = null
  let isUnknown = false
  let hasRun = false
  let isLost = false
  /** Resolves when all statements sent so far have settled; never rejects. */
  let tail: Promise<unknown> = Promise.resolve()
  let pendingCount = 0
  let idleTimer: NodeJS.Timeout | undefined

  async function send(sql: string | Sql, params: readonly unknown[]): Promise<Outcome> {
    try {
      refuseInTransaction(isOver, failure)
      const [text, values] = typeof sql === 'string' ? [sql, params] : [sql.text, valuesOf(sql, params)]
      const execution = await connection.execute(statements.get(text), values)
      isLost ||= !hasRun && execution.failure !== null && hasNotRun(execution)
      hasRun = true
      if (execution.failure !== null) throw toDbError(execution.failure)
      return execution
    } catch (refused) {
      const thrown = isReadOnly ? ofReadOnly(refused as DbError) : refused
      if (!isOver) failure ??= thrown as DbError
      throw thrown
    } finally {
      pendingCount--
      idleTimer?.refresh()
    }
  }

  /** Runs statements in the order in which they are sent, one at a time. */
  function run(sql: string | Sql, params: readonly unknown[]): Promise<Outcome> {
    pendingCount++
    const outcome = pendingCount === 1 ? send(sql, params) : tail.then(() => send(sql, params))
    tail = outcome.then(ignore, ignore)
    return outcome
  }

  const tx = queryable(run)

  const idle = new Promise<never>((_, reject) => {
    const onTimer = (): void => {
      if (pendingCount > 0) idleTimer?.refresh()
      else reject(idleTransactionRefused(TRANSACTION_IDLE_MS))
    }
    idleTimer = setTimeout(onTimer, TRANSACTION_IDLE_MS)
  })

  try {
    // Without a companion the runtime itself calls it: that is not measured.
    const given = companion === undefined ? tx : instrument(companion.extend(tx))
    const result = await Promise.race([(async () => work(given))(), idle])
    // Statements that `work` has sent without waiting for them belong to the transaction too.
    while (pendingCount > 0) await tail
    await companion?.pending
    if (failure) throw failure
    if (companion !== undefined) await runLast(companion, run)
    isOver = true
    await commit(connection, (error) => {
      isUnknown = true
      companion?.unknown(error)
    })
    companion?.committed()
    return result
  } catch (thrown) {
    isOver = true
    while (pendingCount > 0) await tail
    await connection.rollback()
    const rolledBack = failure ?? thrown
    if (!isUnknown) companion?.rolledBack()
    if (isLost && failure !== null) throw new Repeatable(failure, true)
    if (isRepeatable(rolledBack)) throw new Repeatable(rolledBack)
    throw thrown
  } finally {
    clearTimeout(idleTimer)
  }
}

/** A server that takes no writes has the same error: here the statement is at fault. */
function ofReadOnly(error: DbError): DbError {
  if (sqlStateOf(error.cause) !== READ_ONLY_STATE) return error
  return new DbError('other', `${READ_ONLY}: ${error.message}`, { cause: error.cause })
}

async function runLast(
  companion: TransactionCompanion,
  run: (sql: string, params: readonly unknown[]) => Promise<Outcome>,
): Promise<void> {
  try {
    for (const { sql, params } of companion.lastStatements()) await run(sql, params)
  } catch (thrown) {
    throw companion.refusal?.(thrown as DbError) ?? thrown
  }
}

async function commit(connection: PostgresConnection, onUnknown: (error: DbError) => void): Promise<void> {
  const execution = await connection.execute(COMMIT, [])
  if (execution.failure === null) return
  const error = toDbError(execution.failure)
  if (hasNotRun(execution) || (error.kind !== 'unavailable' && error.kind !== 'timeout')) throw error
  const unknown = new DbError(error.kind, `${error.message}; it is not known whether the transaction was committed`, {
    cause: error.cause ?? error,
  })
  onUnknown(unknown)
  throw unknown
}

function isRepeatable(thrown: unknown): thrown is DbError {
  return isInstance(thrown, DbError) && (thrown.kind === 'serialization' || isStalePlan(thrown.cause))
}

function ignore(): void {}
