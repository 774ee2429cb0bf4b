import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageFault } from '../../src/core/config/arguments.ts'
import { readCommandLine } from '../../src/core/config/command-line.ts'

test('a start without flags runs everything; --watch and --boot-tool are read', () => {
  assert.deepEqual(readCommandLine([]), { isDevelopment: false, bootTool: null })
  assert.deepEqual(readCommandLine(['--watch']), { isDevelopment: true, bootTool: null })
  assert.deepEqual(readCommandLine(['--boot-tool', 'db']), { isDevelopment: false, bootTool: 'db' })
  assert.deepEqual(readCommandLine(['--boot-tool=db']), { isDevelopment: false, bootTool: 'db' })
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
