import assert from 'node:assert/strict'
import { test } from 'node:test'
import { children, ENDLESS, LIMIT_MS, run, start } from '../rooms/db/runaway.ts'
import { limitOf, until } from '../support/until.ts'

test('every statement that does not end is ended at the limit, and its lane serves on', async (t) => {
  const heddle = await start(t)
  await run(heddle, 'CREATE TABLE numbers (i INTEGER)')
  await run(heddle, `${ENDLESS} INSERT INTO numbers SELECT i FROM n LIMIT 3000`)
  const runaways: Record<string, object> = {
    [`${ENDLESS} SELECT count(*) FROM n`]: {},
    [`${ENDLESS} INSERT INTO numbers SELECT i FROM n`]: {},
    [`${ENDLESS} UPDATE numbers SET i = (SELECT count(*) FROM n)`]: { within: 'transaction' },
    'SELECT count(*) FROM numbers a, numbers AS b, numbers c WHERE a.i + b.i + c.i < 0': {},
    'SELECT count(*) FROM numbers a WHERE (SELECT count(*) FROM numbers b, numbers c WHERE b.i + c.i = a.i) < 0': {},
    "SELECT replace(hex(zeroblob(5000000)), '0', 'a') LIKE $1 AS found": { params: [`%${'a'.repeat(40_000)}b`] },
  }
  for (const [sql, rest] of Object.entries(runaways)) {
    const startMs = performance.now()
    const isLate = limitOf(LIMIT_MS + 4000)
    const { status, body } = await run(heddle, sql, rest)
    const tookMs = performance.now() - startMs
    assert.deepEqual([status, body.kind], [400, 'timeout'], `${sql}: ${JSON.stringify(body)}`)
    assert.ok(tookMs >= LIMIT_MS && !isLate(), `${sql} took ${tookMs} ms`)
    assert.equal((await heddle.post('/rows', { id: sql })).status, 201)
  }
  const { body } = await run(heddle, 'SELECT count(*) AS n FROM numbers')
  assert.deepEqual(body.data.rows, [{ n: 3000 }])
  await until(() => children(heddle).length === 0, 'no process is left of them')
  const lanes: { restarts: number }[] = (await heddle.json('/system/lanes')).body
  assert.deepEqual(
    lanes.map(({ restarts }) => restarts),
    [0, 0],
    'no lane was replaced',
  )
})
