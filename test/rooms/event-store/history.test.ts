import assert from 'node:assert/strict'
import { appendFile, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import type { TreeNode } from '../../../src/index.ts'
import { TraceFile } from '../../../src/primary/events/records.ts'
import { TRACE_RECORDS, type Trace, TraceRing } from '../../../src/runtime/events/trace-ring.ts'
import { temporaryFolder } from '../../support/folder.ts'
import type { Heddle } from '../../support/heddle.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, kill, onSqlite } from './databases.ts'

const trace = (id: string): Trace => ({
  id,
  parentId: null,
  event: 'order.taken',
  emitter: 'logged.TakeOrders',
  subscribers: ['logged.TakeOrders'],
  payloadKeys: 'id\0name',
  timestampMs: 1,
  requestId: null,
  trace: '',
})

async function traceFile(t: import('node:test').TestContext) {
  const folder = temporaryFolder(t)
  const path = join(folder, 'service.db-traces')
  const faults: unknown[] = []
  return { path, faults, open: () => new TraceFile(path, SYSTEM_CLOCK, (error) => faults.push(error)) }
}

test('the tree of a request goes on in the next process where kill -9 has ended this one', async (t) => {
  const store = await onSqlite(t)
  assert.ok(store)
  const first = await store.start({ EVENT_BUS_DRIVER: 'database', HOLD: 'wait handled' })
  const { id: taken } = await post(first, '/orders', { id: 'a' })
  const treeOf = async (heddle: Heddle): Promise<TreeNode[]> =>
    (await heddle.json('/tree')).body.roots.filter(({ event }: TreeNode) => event.startsWith('order.'))
  await until(async () => (await treeOf(first))[0]?.children.length === 1, 'the order handled')
  const before = await treeOf(first)
  await until(
    async () => (await readFile(`${store.path}-traces`, 'utf8').catch(() => '')).includes('order.handled'),
    'the history written',
  )
  await kill(first)
  const second = await store.start({ EVENT_BUS_DRIVER: 'database' })
  await until(async () => (await handledBy(second)).length === 2, 'what was left handled')
  assert.deepEqual(await treeOf(second), before, 'each event once, under its parent')
  assert.equal(before[0]?.id, taken)
  await post(second, '/orders', { id: 'b' })
  await until(async () => (await treeOf(second))[1]?.children.length === 1, 'another tree beside it')
  assert.equal(await second.stop(), 0)
})

test('the history has the last events, oldest first, through two files that only their owner reads', async (t) => {
  const { path, faults, open } = await traceFile(t)
  const file = open()
  assert.deepEqual(file.read(), [], 'nothing yet')
  const ids = Array.from({ length: 3 * TRACE_RECORDS }, (_, n) => `evt_${n}`)
  for (let at = 0; at < ids.length; at += 200) {
    for (const id of ids.slice(at, at + 200)) file.add(trace(id))
    const last = ids.slice(0, at + 200).at(-1)!
    await until(async () => (await readFile(path, 'utf8').catch(() => '')).includes(`"${last}"`), 'the batch written')
  }
  await file.close()
  assert.deepEqual(
    open()
      .read()
      .map(({ id }) => id),
    ids.slice(-TRACE_RECORDS),
  )
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  assert.deepEqual(faults, [])
})

test('a line that was cut off, and what is no trace, are left out', async (t) => {
  const { path, open } = await traceFile(t)
  await writeFile(path, `null\n[]\n{"id":1}\n${JSON.stringify(trace('evt_a'))}\n`)
  await appendFile(path, JSON.stringify(trace('evt_b')).slice(0, 30))
  assert.deepEqual(open().read(), [trace('evt_a')])
})

test('a history that cannot be written says so once, and nothing waits for it', async (t) => {
  const { path, faults, open } = await traceFile(t)
  await rm(join(path, '..'), { recursive: true })
  const file = open()
  file.add(trace('evt_a'))
  await until(() => faults.length === 1, 'the fault')
  file.add(trace('evt_b'))
  await file.close()
  assert.equal(faults.length, 1)
})

test('an event of the process before that is published again stands in the history once', () => {
  const ring = new TraceRing()
  ring.restore([trace('evt_a'), trace('evt_b')])
  assert.equal(ring.push(trace('evt_b')), false)
  assert.equal(ring.push(trace('evt_c')), true)
  assert.deepEqual(
    ring.records().map(({ id }) => id),
    ['evt_a', 'evt_b', 'evt_c'],
  )
})
