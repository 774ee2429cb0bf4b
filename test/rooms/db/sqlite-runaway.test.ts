import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import { children, ENDLESS, run, start } from './runaway.ts'

test('a recursion that ends gives its rows, in a transaction too, with the values as they are', async (t) => {
  const heddle = await start(t)
  const upTo = (n: number) => `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${n})`
  const read = await run(heddle, `${upTo(3)} SELECT i, $1 AS text FROM n`, { params: ['ä'] })
  assert.deepEqual(
    read.body.data.rows,
    [1, 2, 3].map((i) => ({ i, text: 'ä' })),
  )
  const insert = `${upTo(5)} INSERT INTO rows_kept SELECT 'row ' || i, 'x' FROM n`
  assert.equal((await run(heddle, insert, { within: 'transaction' })).body.data.rowCount, 5)
  assert.equal((await run(heddle, insert)).body.kind, 'unique_violation')
  assert.equal((await heddle.json('/rows')).body.data.n, 5)
})

test('statements that look up rows never leave their lane', async (t) => {
  const heddle = await start(t)
  await heddle.post('/rows', { id: 'a' })
  await run(heddle, `SELECT * FROM rows_kept k JOIN rows_kept l ON k.id = l.id WHERE k.id LIKE 'a%' ORDER BY k.filler`)
  await run(heddle, 'SELECT count(*) FROM rows_kept')
  assert.deepEqual(children(heddle), [])
})

test('a process that dies leaves no statement behind that burns a core', async (t) => {
  const heddle = await start(t, { RDB_STATEMENT_TIMEOUT_MS: '60000' })
  run(heddle, `${ENDLESS} SELECT count(*) FROM n`).catch(() => {})
  const [child] = await until(() => {
    const found = children(heddle)
    return found.length > 0 ? found : null
  }, 'the statement runs')
  await heddle.stop('SIGKILL')
  const isGone = () => {
    try {
      return execFileSync('ps', ['-o', 'stat=', '-p', String(child)])
        .toString()
        .startsWith('Z')
    } catch {
      return true
    }
  }
  await until(isGone, 'its process has ended')
})
