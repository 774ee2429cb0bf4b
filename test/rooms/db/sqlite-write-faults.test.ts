import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import type { Heddle } from '../../support/heddle.ts'
import { fullDiskOf, readOnlyDiskOf } from '../../support/power/disk.ts'
import { BUSY, folders, post, start, untilNot, untilReady } from './write-faults.ts'

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
