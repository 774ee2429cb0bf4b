import PostgresDb from '../../../src/extras/postgres/index.ts'
import { postgresSettings, runtimeFor, type ServerAccess } from './fixture.ts'

/** Orders in the table, from 1. */
export const ORDERS = 300
const CALLERS = 20

export interface OrderTask {
  server: ServerAccess
  database: string
  /** `delete` asks for orders that do not exist. */
  statement: 'delete' | 'read'
  rdbPooler: 'none' | 'transaction'
  /** Statements of each caller. */
  rounds: number
}

export interface OrderResult {
  sent: number
  answers: number
  /** What was answered, and is not the answer to the statement. */
  wrong: unknown[]
}

/** A thread of its own with one statement, which it sends again and again. */
export default async function ask({ server, database, statement, rdbPooler, rounds }: OrderTask): Promise<OrderResult> {
  const settings = { ...postgresSettings(server, database), rdbMaxPool: 5, rdbPooler }
  const db = new PostgresDb(runtimeFor({ settings, thread: { kind: 'lane', index: 0 } }))
  const result: OrderResult = { sent: CALLERS * rounds, answers: 0, wrong: [] }
  const send = async (id: number): Promise<void> => {
    if (statement === 'delete') {
      const outcome = await db.execute('DELETE FROM orders WHERE id = $1', [id + ORDERS])
      if (outcome.rowCount !== 0 || outcome.rows.length > 0) result.wrong.push(outcome)
    } else {
      const rows = await db.query('SELECT id FROM orders WHERE id = $1', [id])
      if (rows.length !== 1 || rows[0]!.id !== id) result.wrong.push(rows)
    }
    result.answers++
  }
  const caller = async (_: unknown, number: number): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      // Whatever fails is an error, which the caller sees.
      await send(((round * CALLERS + number) % ORDERS) + 1).catch(() => {})
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  await db.stop()
  return result
}
