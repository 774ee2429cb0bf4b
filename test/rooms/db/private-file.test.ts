import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { DatabaseFile, RESERVE_BYTES } from '../../../src/tools/sqlite/database-file.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

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
  const file = new DatabaseFile(path, new SharedArrayBuffer(16))
  file.keepReserve()
  file.giveReserve()
  assert.equal(readFileSync(`${path}-reserve`, 'utf8'), 'mine')
  rmSync(`${path}-reserve`)
  file.keepReserve()
  assert.equal(statSync(`${path}-reserve`).size, RESERVE_BYTES)
  file.giveReserve()
  assert.equal(existsSync(`${path}-reserve`), false)
})
