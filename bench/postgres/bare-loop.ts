// The same events by a loop of the driver alone.
import pg from 'pg'
import { STORED_ENVELOPE, STORED_PAYLOAD } from '../domains/bench/tick-count.ts'
import type { DbAccess } from '../elastic/db.ts'

/** Rows of a statement. */
const RUN = 100

/** 100 inserts in a statement, then they are deleted, on one connection. @returns events a second */
export default async function measureBareLoop({
  access,
  measureMs,
}: {
  access: DbAccess
  measureMs: number
}): Promise<number> {
  const client = new pg.Client(access)
  await client.connect()
  await client.query(
    `CREATE TABLE IF NOT EXISTS bare_event (seq BIGINT PRIMARY KEY, id TEXT NOT NULL, event TEXT NOT NULL, envelope TEXT NOT NULL,
       payload TEXT NOT NULL, key TEXT, due_ms BIGINT NOT NULL, expires_ms BIGINT NOT NULL)`,
  )
  const values = Array.from(
    { length: RUN },
    (_, n) => `($${n * 4 + 1}, $${n * 4 + 2}, 'bench.tick', $${n * 4 + 3}, $${n * 4 + 4}, NULL, 0, 0)`,
  )
  const insert = { name: 'insert', text: `INSERT INTO bare_event VALUES ${values.join(', ')}` }
  const remove = { name: 'remove', text: 'DELETE FROM bare_event WHERE seq BETWEEN $1 AND $2' }
  const payload = JSON.stringify(STORED_PAYLOAD)
  const startMs = performance.now()
  let seq = 0
  while (performance.now() - startMs < measureMs) {
    const first = seq + 1
    const params: unknown[] = []
    for (let n = 0; n < RUN; n++) params.push(++seq, 'evt_0197f7b0c0ffee0197f7b0c0ffee', STORED_ENVELOPE, payload)
    await client.query({ ...insert, values: params })
    await client.query({ ...remove, values: [first, seq] })
  }
  const elapsedMs = performance.now() - startMs
  await client.end()
  return (seq / elapsedMs) * 1000
}
