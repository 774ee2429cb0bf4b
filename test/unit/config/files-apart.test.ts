import assert from 'node:assert/strict'
import { linkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ConfigFaults, loadSettings } from '../../../src/core/config/load.ts'
import { folderOf } from '../../support/folder.ts'

const SAME = /^HISTORY_PATH: expected another file than SQLITE_PATH /

/** The faults of an environment with these files. */
function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    loadSettings({ AUTH_SECRET_KEY: 'x'.repeat(32), ...env })
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigFaults, String(error))
    return error.faults
  }
}

test('one file for the history and the database is refused, by whatever name', async (t) => {
  const folder = await folderOf(t, { 'there.db': '', 'deep/x': '' })
  const at = (name: string): string => join(folder, name)
  linkSync(at('there.db'), at('hard.db'))
  symlinkSync(at('there.db'), at('soft.db'))
  symlinkSync('not-there.db', at('dangling.db'))
  symlinkSync(at('deep'), at('folder'))
  symlinkSync(at('circle'), at('circle'))
  const pairs = [
    ['a.db', 'a.db'],
    ['there.db', 'hard.db'],
    ['soft.db', 'there.db'],
    ['not-there.db', 'dangling.db'],
    ['deep/new.db', 'folder/new.db'],
    ['a.db', 'a.db-wal'],
    ['a.db-wal', 'a.db'],
    ['a.db', 'a.db-reserve'],
    ['circle', 'circle'],
  ] as const
  for (const [database, history] of pairs) {
    const faults = faultsOf({ SQLITE_PATH: at(database), HISTORY_PATH: at(history) })
    assert.equal(faults.length, 1, `${database} and ${history}`)
    assert.match(faults[0]!, SAME)
  }
  // The default of the other lies beside it.
  assert.match(faultsOf({ SQLITE_PATH: at('history.db') })[0]!, SAME)
  assert.deepEqual(faultsOf({ SQLITE_PATH: at('history.db'), HISTORY_ENABLED: 'false' }), [])
  writeFileSync(at('other.db'), '')
  assert.deepEqual(faultsOf({ SQLITE_PATH: at('there.db'), HISTORY_PATH: at('other.db') }), [])
})
