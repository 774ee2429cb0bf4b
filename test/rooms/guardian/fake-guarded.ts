import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

const GUARDIAN = fileURLToPath(new URL('../../../src/guardian/guardian.cjs', import.meta.url))
const FAKE = fileURLToPath(new URL('./fake-runtime.cjs', import.meta.url))

/** A real guardian of processes that only pretend to be a runtime: they start in no time. */
export async function guardFake(
  t: TestContext,
  way: string,
  { processes = 1, env = {} }: { processes?: number; env?: Record<string, string> } = {},
): Promise<{ child: ChildProcess; reports: string; errors: () => string }> {
  const reports = await mkdtemp(join(tmpdir(), 'heddle-crashes-'))
  const code = `const { Guardian } = require(${JSON.stringify(GUARDIAN)}); new Guardian([${JSON.stringify(FAKE)}], ${processes}).start()`
  const child = spawn(process.execPath, ['-e', code], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { PATH: process.env.PATH, FAKE: way, FAKE_REPORTS: join(reports, 'kept'), ...env },
  })
  let errors = ''
  if (way !== 'shout')
    child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      errors += chunk
    })
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    await rm(reports, { recursive: true, force: true })
  })
  return { child, reports: join(reports, 'kept'), errors: () => errors }
}
