import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { INHERITED, run } from '../../support/command.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'

const HEDDLE = fileURLToPath(new URL('../../../src/heddle.cjs', import.meta.url))

/** A run has two processes to start. */
const WATCH_MS = 30_000

const GREETING = "export const greeting = (name: string): string => 'hello ' + name\n"
const TESTS = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeddleError } from 'heddle'
import { greeting } from '../domains/greeting.ts'

test('it greets (by name)', () => assert.equal(greeting('ada'), 'hello ada'))
test('it knows the runtime', () => assert.equal(new HeddleError('HTTP_NOT_FOUND').status, 404))
`

async function applicationIn(t: TestContext, name: string): Promise<string> {
  const folder = temporaryFolder(t)
  const app = join(folder, name)
  for (const part of ['domains', 'test']) await mkdir(join(app, part), { recursive: true })
  await writeFile(join(app, 'package.json'), '{"type":"module"}')
  await writeFile(join(app, 'domains/greeting.ts'), GREETING)
  await writeFile(join(app, 'test/greeting.test.ts'), TESTS)
  return app
}

const heddle = (cwd: string, ...args: string[]) => run(process.execPath, [HEDDLE, ...args], cwd)

test('heddle test runs the tests of an application, whatever its folder is called', async (t) => {
  const { code, output } = await heddle(await applicationIn(t, 'what? back\\slash per%20cent br[ack]et* #hash'), 'test')
  assert.equal(code, 0, output)
  assert.match(output, /pass 2/)
})

test('heddle test -t runs the tests of a name, which is a text or an expression', async (t) => {
  const app = await applicationIn(t, 'app')
  for (const name of ['greets (by name)', '/^it GREETS/i']) {
    const { code, output } = await heddle(app, 'test', 'greeting', '-t', name)
    assert.equal(code, 0, output)
    assert.match(output, /it greets[\s\S]*pass 1/, name)
  }
  const wrong = await heddle(app, 'test', '--wach')
  assert.deepEqual([wrong.code, /Unknown option '--wach'[\s\S]*Usage: heddle test/.test(wrong.output)], [2, true])
})

test('heddle test --watch runs them again when a file that they load is saved', async (t) => {
  const app = await applicationIn(t, 'app')
  const child: ChildProcess = spawn(process.execPath, [HEDDLE, 'test', '--watch'], { cwd: app, env: INHERITED })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  t.after(async () => {
    child.kill('SIGTERM')
    await ended
  })
  let output = ''
  child.stdout!.setEncoding('utf8').on('data', (text) => (output += text))
  await until(() => /pass 2/.test(output), 'the first run', WATCH_MS)
  await writeFile(join(app, 'domains/greeting.ts'), GREETING.replace('hello', 'good bye'))
  await until(() => /fail 1/.test(output), 'the second run', WATCH_MS)
  await writeFile(join(app, 'domains/greeting.ts'), GREETING)
  await until(() => output.match(/pass 2/g)!.length > 1, 'the third run', WATCH_MS)
})

test('every command says how it is used', async (t) => {
  const app = await applicationIn(t, 'app')
  const usage = (await heddle(app, '--help')).output
  const commands = [...usage.matchAll(/^ {2}(\w+) /gm)].map(([, name]) => name!)
  assert.ok(commands.length > 10, usage)
  for (const command of [...commands.map((name) => [name]), ['migrate', 'up'], ['new', 'plugin']]) {
    // The short form of `--help`, which the list above came from.
    const { code, output } = await heddle(app, ...command, '-h')
    assert.deepEqual([code, output.startsWith('Usage: ')], [0, true], `${command.join(' ')} -h\n${output}`)
  }
})
