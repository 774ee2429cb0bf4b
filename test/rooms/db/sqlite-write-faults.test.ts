import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { fullDiskOf, readOnlyDiskOf } from '../../support/power/disk.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DURABLE = fileURLToPath(new URL('../../fixtures/durable', import.meta.url))

async function folders(t: TestContext) {
  const work = await realpath(await mkdtemp(join(tmpdir(), 'heddle-faults-')))
  t.after(() => rm(work, { recursive: true, force: true, maxRetries: 10 }))
  const data = join(work, 'data')
  await mkdir(data)
  return { work, data, path: join(data, 'service.db') }
}

const start = (t: TestContext, path: string, env: Record<string, string> = {}): Promise<Heddle> =>
  startHeddle(t, { domains: [SHIPPED, DURABLE], lanes: 1, env: { SQLITE_PATH: path, ...env } })

async function post(heddle: Heddle, id: string, filler = 'x') {
  const { status, headers, body } = await heddle.json('/rows', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id, filler }),
  })
  return { status, retryAfter: headers.get('retry-after'), error: body.error }
}

const BUSY = { status: 503, retryAfter: '1', error: 'The database does not take this at the moment' }

async function readiness(heddle: Heddle): Promise<{ status: number; reasons: string }> {
  const { status, body } = await heddle.json('/system/health/ready')
  return { status, reasons: JSON.stringify(body) }
}
const untilReady = (heddle: Heddle) => until(async () => (await readiness(heddle)).status === 200, 'it is ready')
const untilNot = (heddle: Heddle, reason: RegExp) =>
  until(async () => {
    const { status, reasons } = await readiness(heddle)
    return status === 503 && reason.test(reasons)
  }, `it is not ready: ${reason}`)

test('on a full disk writes are 503, readiness says so, rows can be deleted, and room brings everything back', async (t) => {
  const { work, data, path } = await folders(t)
  const disk = await fullDiskOf(data, work)
  const heddle = await start(t, path, disk.env)
  await untilReady(heddle)
  for (let n = 0; n < 30; n++) assert.equal((await post(heddle, `old-${n}`, 'x'.repeat(100_000))).status, 201)
  await until(() => existsSync(`${path}-reserve`), 'room is kept')
  await disk.fill()
  const refused = await until(async () => {
    const answer = await post(heddle, crypto.randomUUID(), 'x'.repeat(100_000))
    return answer.status === 201 ? null : answer
  }, 'a write is refused')
  assert.deepEqual(refused, BUSY)
  await untilNot(heddle, /the disk is full/)
  for (let n = 0; n < 30; n++) {
    const { status, body } = await heddle.json(`/rows/old-${n}`, { method: 'DELETE' })
    assert.deepEqual([status, body.data], [200, { rowCount: 1 }], `old-${n}`)
  }
  assert.equal((await readiness(heddle)).status, 503)
  await disk.empty()
  await untilReady(heddle)
  assert.equal((await post(heddle, 'new')).status, 201)
})

test('a process that starts on a full disk becomes ready when there is room', async (t) => {
  const { work, data, path } = await folders(t)
  const disk = await fullDiskOf(data, work)
  await disk.fill()
  const heddle = await start(t, path, disk.env)
  await untilNot(heddle, /did not boot/)
  await disk.empty()
  await untilReady(heddle)
  assert.equal((await post(heddle, 'first')).status, 201)
})

test('on a disk that has become read-only writes are 503, what is read is answered, and it is ready when it can be written again', async (t) => {
  const { work, data, path } = await folders(t)
  const disk = await readOnlyDiskOf(data, work)
  const heddle = await start(t, path, disk.env)
  await untilReady(heddle)
  assert.equal((await post(heddle, 'kept')).status, 201)
  await disk.mountReadOnly()
  assert.deepEqual(await post(heddle, 'refused'), BUSY)
  await untilNot(heddle, /writes to the database file fail/)
  const rows = async () => (await heddle.json('/rows')).body.data.n
  assert.equal(await rows(), 1)
  await disk.mountWritable()
  await untilReady(heddle)
  assert.equal((await post(heddle, 'again')).status, 201)
  assert.equal(await rows(), 2)
})

test('a process that starts on a read-only file says so, and becomes ready when it can be written', async (t) => {
  const { work, data, path } = await folders(t)
  const disk = await readOnlyDiskOf(data, work)
  const first = await start(t, path, disk.env)
  await untilReady(first)
  assert.equal((await post(first, 'kept')).status, 201)
  assert.equal(await first.stop(), 0)
  await disk.mountReadOnly()
  const second = await start(t, path, disk.env)
  await untilNot(second, /tool db did not boot: unable to open database file/)
  assert.equal((await post(second, 'refused')).status, 503)
  await disk.mountWritable()
  await untilReady(second)
  assert.equal((await post(second, 'again')).status, 201)
})

test('when the database file is removed or replaced, it is not ready, and writes are refused', async (t) => {
  const { path } = await folders(t)
  const heddle = await start(t, path)
  await untilReady(heddle)
  assert.equal((await post(heddle, 'kept')).status, 201)
  await rm(path)
  await untilNot(heddle, /removed or replaced/)
  assert.deepEqual(await post(heddle, 'nowhere'), BUSY)
  await writeFile(path, '')
  await untilNot(heddle, /removed or replaced/)
  assert.deepEqual(await post(heddle, 'nowhere either'), BUSY)
})

test('while another process keeps the write lock, writes are 503 and it is not ready', async (t) => {
  const { path } = await folders(t)
  const heddle = await start(t, path)
  await untilReady(heddle)
  const other = new Database(path)
  t.after(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  assert.deepEqual(await post(heddle, 'waiting'), BUSY)
  await untilNot(heddle, /write lock/)
  other.exec('ROLLBACK')
  await untilReady(heddle)
  assert.equal((await post(heddle, 'waiting')).status, 201)
})

test('a second process on the same file says so at its start', async (t) => {
  const { path } = await folders(t)
  const warned = ({ logs }: Heddle) => logs.some(({ msg }) => msg.includes(`Another process has ${path} open`))
  // With events in the database it does not start.
  const env = { EVENT_BUS_DRIVER: 'in_process' }
  const first = await start(t, path, env)
  const second = await start(t, path, env)
  assert.deepEqual([warned(first), warned(second)], [false, true])
  assert.equal((await post(second, 'shared')).status, 201)
})
