import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const DURABLE = fileURLToPath(new URL('../../fixtures/durable', import.meta.url))
const LIMIT_MS = 500
const ENDLESS = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)'

const start = (t: TestContext, env: Record<string, string> = {}): Promise<Heddle> =>
  startHeddle(t, { domains: [DURABLE], lanes: 2, env: { RDB_STATEMENT_TIMEOUT_MS: String(LIMIT_MS), ...env } })

const post = (heddle: Heddle, path: string, body: object) =>
  heddle.json(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
const run = (heddle: Heddle, sql: string, rest: object = {}) => post(heddle, '/sql', { sql, ...rest })

/** Processes that the service has started for statements. */
function children({ process: { pid } }: Heddle): number[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,ppid=,stat=,args=']).toString().split('\n')
  return lines.flatMap((line) => {
    const [child, parent, state, ...args] = line.trim().split(/\s+/)
    const counts = Number(parent) === pid && !state!.startsWith('Z') && args.join(' ').includes('statement-child')
    return counts ? [Number(child)] : []
  })
}

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
    const { status, body } = await run(heddle, sql, rest)
    const tookMs = performance.now() - startMs
    assert.deepEqual([status, body.kind], [400, 'timeout'], `${sql}: ${JSON.stringify(body)}`)
    assert.ok(tookMs >= LIMIT_MS && tookMs < LIMIT_MS + 4000, `${sql} took ${tookMs} ms`)
    assert.equal((await post(heddle, '/rows', { id: sql })).status, 201)
  }
  const { body } = await run(heddle, 'SELECT count(*) AS n FROM numbers')
  assert.deepEqual(body.data.rows, [{ n: 3000 }])
  await until(() => children(heddle).length === 0, 'no process is left of them')
  const lanes = (await heddle.json('/system/lanes')).body
  assert.ok(!JSON.stringify(lanes).includes('"restarts":1'), 'no lane was replaced')
})

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
  await post(heddle, '/rows', { id: 'a' })
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
