import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { test } from 'node:test'
import { isRunning, residentKib, startGuarded } from '../rooms/guardian/guarded.ts'
import { until } from '../support/until.ts'

/** What the guardian may take, KiB, where Node alone leaves it room for that; and what it adds to Node alone. */
const MAX_RSS_KIB = 45 * 1024
const OWN_RSS_KIB = 8 * 1024

test('the guardian', async (t) => {
  const heddle = await startGuarded(t, { PRIMARY_STALL_MS: '3000', npm_command: 'start', npm_lifecycle_event: 'start' })
  const guardian = heddle.process.pid!
  let pid = await heddle.pid()
  const replaced = async (): Promise<void> => {
    const before = pid
    pid = await heddle.pid(before)
    assert.equal(isRunning(before), false)
    assert.equal(isRunning(guardian), true)
  }

  const metrics = async (): Promise<string> => (await heddle.fetch('/system/metrics/prometheus')).text()

  await t.test('starts a process again that was killed, and its metrics say so', async () => {
    assert.notEqual(pid, guardian)
    assert.match(await metrics(), /^heddle_started_after_death\{\} 0$/m)
    process.kill(pid, 'SIGKILL')
    await replaced()
    assert.match(await metrics(), /^heddle_started_after_death\{\} 1$/m)
  })

  await t.test('starts a process again that an uncaught error of no plugin has ended', async () => {
    await heddle.fetch('/primary/end').catch(() => {})
    await replaced()
    assert.match(heddle.errors.join(''), /nobody knows whose this is/, 'its standard error is handed on')
  })

  await t.test('starts a process again that ended itself with a code that says trouble', async () => {
    await heddle.die('/primary/exit?code=3')
    await replaced()
  })

  await t.test(
    'ends a process whose primary thread stands still for PRIMARY_STALL_MS, and starts it again',
    async () => {
      await heddle.die('/primary/stall?ms=600000')
      await replaced()
      assert.match(heddle.errors.join(''), /stood still for 3\d{3} ms: SIGKILL ends it/)
    },
  )

  await t.test('stays small', async () => {
    const bare = await bareNodeKib()
    const rss = await residentKib(guardian)
    t.diagnostic(`guardian ${rss} KiB, Node alone ${bare} KiB`)
    assert.ok(rss < Math.max(MAX_RSS_KIB, bare + OWN_RSS_KIB), `${rss} KiB`)
  })

  await t.test('passes SIGHUP on: the process reloads its lanes, and stays', async () => {
    heddle.process.kill('SIGHUP')
    await until(() => heddle.logs.some(({ msg }) => msg.startsWith('SIGHUP: reloading')), 'the reload')
    assert.equal(await heddle.pid(), pid)
    await until(async () => /^heddle_reloads_total\{result="ok"\} 1$/m.test(await metrics()), 'it is counted')
  })

  await t.test('takes SIGINT from the terminal, and again from npm, for one stop in order', async () => {
    assert.equal((await flightFolders(guardian)).length, process.platform === 'linux' ? 1 : 0)
    const answer = heddle.json('/wait?ms=1000')
    await until(async () => (await heddle.json('/waiting')).body.waiting === 1, 'the request in flight')
    const exited = once(heddle.process, 'exit')
    heddle.process.kill('SIGINT')
    heddle.process.kill('SIGINT')
    assert.equal((await answer).status, 200, 'the request in flight was not drained')
    assert.equal((await exited)[0], 0)
    assert.equal(isRunning(pid), false)
    assert.deepEqual(await flightFolders(guardian), [], 'it leaves nothing in memory')
  })
})

/** Resident memory of a Node that does nothing but wait, KiB. */
async function bareNodeKib(): Promise<number> {
  const child = spawn(process.execPath, ['-e', 'process.stdout.write("up"); setTimeout(() => {}, 60_000)'])
  try {
    await once(child.stdout, 'data')
    return await residentKib(child.pid!)
  } finally {
    child.kill('SIGKILL')
  }
}

async function flightFolders(guardian: number): Promise<string[]> {
  const names = await readdir('/dev/shm').catch(() => [])
  return names.filter((name) => new RegExp(`^heddle-flight-\\d*-${guardian}-`).test(name))
}
