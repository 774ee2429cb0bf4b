import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { INHERITED } from '../../support/command.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { ROOT } from './sources.ts'

interface LaunchConfiguration {
  name: string
  request: 'launch' | 'attach'
  program: string
  runtimeArgs: string[]
  runtimeExecutable: string
  args?: string[]
  env?: Record<string, string>
}

const text = readFileSync(join(ROOT, '.vscode/launch.json'), 'utf8').replace(/^\s*\/\/.*$/gm, '')
const { configurations } = JSON.parse(text) as { configurations: LaunchConfiguration[] }
const launches = configurations.filter(({ request }) => request === 'launch')

for (const { name, program, runtimeArgs, args = [], env } of launches.filter(({ program }) =>
  /main\.ts$/.test(program),
)) {
  test(`the launch configuration "${name}" starts the service under the inspector, and SIGTERM ends it`, async (t) => {
    const directory = temporaryFolder(t)
    const argv = ['--inspect=127.0.0.1:0', ...runtimeArgs, program.replace(/^\$\{workspaceFolder\}/, ROOT), ...args]
    const child = spawn(process.execPath, argv, {
      cwd: ROOT,
      env: { ...INHERITED, ...env, HTTP_PORT: '0', LANES: '1', SQLITE_PATH: join(directory, 'service.db') },
    })
    let output = ''
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
    const serving = new Promise<boolean>((resolve) => {
      const read = (chunk: Buffer): void => {
        output += chunk
        if (output.includes('Serving on')) resolve(true)
      }
      child.stdout.on('data', read)
      child.stderr.on('data', read)
      void ended.then(() => resolve(false))
    })
    assert.ok(await serving, output)
    assert.match(output, /Debugger listening/)
    child.kill('SIGTERM')
    assert.equal(await ended, 0, output)
  })
}

test('a launch configuration runs the test file that is open', () => {
  const own = launches.find(({ program }) => /^\$\{file\}$/.test(program))!
  const file = join(ROOT, 'test/unit/cli/create.test.ts')
  const executable = own.runtimeExecutable.replace(/^\$\{workspaceFolder\}/, ROOT)
  const { status, stdout } = spawnSync(executable, [...own.runtimeArgs, file], {
    cwd: ROOT,
    env: INHERITED,
    encoding: 'utf8',
  })
  assert.equal(status, 0, stdout)
  assert.match(stdout, /pass [1-9]/)
})
