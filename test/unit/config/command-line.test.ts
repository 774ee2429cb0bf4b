import assert from 'node:assert/strict'
import { linkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readCommandLine, UsageFault } from '../../../src/core/config/command-line.ts'
import { faultsOf as faultsIn } from '../../support/config-faults.ts'
import { folderOf } from '../../support/folder.ts'

const NOTHING = { isDevelopment: false, bootTool: null, inspector: null }

test('a start without flags runs everything; --watch, --boot-tool and --inspect are read', () => {
  assert.deepEqual(readCommandLine([]), NOTHING)
  assert.deepEqual(readCommandLine(['--watch']), { ...NOTHING, isDevelopment: true })
  assert.deepEqual(readCommandLine(['--boot-tool', 'db']), { ...NOTHING, bootTool: 'db' })
  assert.deepEqual(readCommandLine(['--boot-tool=db']), { ...NOTHING, bootTool: 'db' })
  for (const [flag, host, port] of [
    ['--inspect', '127.0.0.1', 9229],
    ['--inspect=9230', '127.0.0.1', 9230],
    ['--inspect=0.0.0.0:0', '0.0.0.0', 0],
    ['--inspect=[::1]:9230', '::1', 9230],
  ] as const) {
    assert.deepEqual(readCommandLine([flag]), { ...NOTHING, inspector: { host, port } })
  }
  assert.throws(() => readCommandLine(['--inspect=here']), /^Error: --inspect=here is no port, and no host:port\n/)
})

test('an unknown flag, a flag without its value, and an argument that is no flag are refused, and named', () => {
  for (const [args, named] of [
    [['--wacht'], '--wacht'],
    [['--boot-tool'], '--boot-tool'],
    [['--watch=yes'], '--watch'],
    [['db'], 'db'],
  ] as const) {
    assert.throws(
      () => readCommandLine(args),
      (error: Error) => error instanceof UsageFault && error.message.includes(`'${named}`),
      args.join(' '),
    )
  }
})

test('the flag that was probably meant is named, also where a value follows', () => {
  for (const [wrong, meant] of [
    ['--wacht', '--watch'],
    ['--boot-tol=db', '--boot-tool'],
    ['--boottool', '--boot-tool'],
  ] as const) {
    assert.throws(
      () => readCommandLine([wrong]),
      new RegExp(`^Error: Unknown option '${wrong.split('=')[0]}': was ${meant} meant\\?\n`),
    )
  }
  assert.throws(() => readCommandLine(['--quick']), /^Error: Unknown option '--quick'\n/)
})

const SAME = /^HISTORY_PATH: expected another file than SQLITE_PATH /

const faultsOf = (env: Record<string, string>) => faultsIn({ AUTH_SECRET_KEY: 'x'.repeat(32), ...env })

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
