import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCommandLine, UsageFault } from '../../../src/core/config/command-line.ts'

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
