import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import { DatabaseFile, FILE_IDENTITY_BYTES, RESERVE_BYTES } from '../../../src/tools/sqlite/database-file.ts'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { fullDiskOf, readOnlyDiskOf } from '../../support/power/disk.ts'
import { until } from '../../support/until.ts'
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

test('the database and all that lies beside it is for its user alone', async (t) => {
  const heddle = await startHeddle(t, { lanes: 1, env: { HISTORY_ENABLED: 'true' } })
  const files = await until(() => {
    const names = readdirSync(heddle.directory).filter((name) => /\.db/.test(name))
    return names.includes('service.db-reserve') && names.includes('history.db-wal') ? names.sort() : null
  }, 'all files are there')
  for (const name of ['service.db', 'service.db-claim', 'service.db-shm', 'service.db-wal', 'history.db'])
    assert.ok(files.includes(name), name)
  const modes = files.map((name) => [name, (statSync(join(heddle.directory, name)).mode & 0o777).toString(8)])
  assert.deepEqual(
    modes,
    files.map((name) => [name, '600']),
  )
})

test('a file that has the name of the reserve and is somebody else’s is neither written nor removed', async (t) => {
  const path = join(await folderOf(t, { 'service.db-reserve': 'mine' }), 'service.db')
  const file = new DatabaseFile(path, new SharedArrayBuffer(FILE_IDENTITY_BYTES))
  file.keepReserve()
  file.giveReserve()
  assert.equal(readFileSync(`${path}-reserve`, 'utf8'), 'mine')
  rmSync(`${path}-reserve`)
  file.keepReserve()
  assert.equal(statSync(`${path}-reserve`).size, RESERVE_BYTES)
  file.giveReserve()
  assert.equal(existsSync(`${path}-reserve`), false)
})
