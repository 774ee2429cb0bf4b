import assert from 'node:assert/strict'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startHeddle } from '../support/heddle.ts'
import { until } from '../support/until.ts'

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
