import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { LaneInfo } from '../../src/contracts/registry.ts'
import type { CrashReport } from '../../src/primary/supervision/crash-report.ts'
import type { ProcessDied } from '../../src/primary/supervision/process-deaths.ts'
import { ABORTING_AT_BOOT, startGuarded } from '../rooms/guardian/guarded.ts'
import { until } from '../support/until.ts'

const PLUGIN = 'risky.AbortProcess'
const ROUTE = 'GET /abort/:way'

test('what V8 aborts is named by the next process', async (t) => {
  const heddle = await startGuarded(t)
  let pid = await heddle.pid()
  const replaced = async (): Promise<void> => {
    pid = await heddle.pid(pid)
  }
  const told = async (): Promise<ProcessDied[]> => (await heddle.json('/told')).body.deaths
  const reports = async (): Promise<CrashReport[]> => {
    const folder = join(heddle.directory, 'crashes')
    const names = (await readdir(folder)).sort()
    return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(folder, name, 'report.json'), 'utf8'))))
  }

  await t.test(
    'the plugin of the request that split a giant string, in the log, in /system/lanes and as an event',
    async () => {
      await heddle.die('/abort/split')
      await replaced()
      const died = await until(async () => (await told())[0], 'the event')
      assert.match(died.message, /^the process died of SIG(?:TRAP|ILL|ABRT): Fatal JavaScript invalid size error/)
      assert.equal(died.code, null)
      assert.deepEqual(died.guilty, { plugin: PLUGIN, handler: ROUTE, line: null, evidence: 'alone' })
      assert.deepEqual(
        died.in_flight.map(({ kind, name, plugin }) => ({ kind, name, plugin })),
        [{ kind: 'request', name: ROUTE, plugin: PLUGIN }],
      )
      const line = heddle.logs.find(({ msg }) => msg.startsWith('The process before this one is dead'))!
      assert.match(line.msg, / in GET \/abort\/:way$/)
      assert.match(String(line.stderr), /Fatal JavaScript invalid size error/)
      const [lane] = (await heddle.json('/system/lanes')).body as LaneInfo[]
      assert.equal(lane!.deaths[0]!.reason, 'process')
      assert.equal(lane!.deaths[0]!.guilty!.plugin, PLUGIN)
    },
  )

  await t.test('a death without any delay: what was begun is written before its handler runs', async () => {
    await heddle.die('/abort/kill')
    await replaced()
    const died = await until(async () => (await told())[0], 'the event')
    assert.equal(died.signal, 'SIGKILL')
    assert.equal(died.guilty, null, 'SIGKILL may come from outside')
    // What was answered within the last 100 ms may still be listed.
    assert.ok(died.in_flight.some(({ name, plugin }) => name === ROUTE && plugin === PLUGIN))
    assert.deepEqual((await reports()).at(-1)!.suspects, [])
  })

  await t.test('a request that was answered is not in flight', async () => {
    await until(async () => (await heddle.json('/waiting')).status === 200, 'an answer')
    // The copy is renewed ten times a second.
    await new Promise((resolve) => setTimeout(resolve, 500))
    process.kill(pid, 'SIGKILL')
    await replaced()
    assert.deepEqual((await reports()).at(-1)!.in_flight, [])
  })

  await t.test(
    'an error that nobody catches, of a plugin on the primary thread, is logged with its line, and ends nothing',
    async () => {
      assert.equal((await heddle.fetch('/primary/throw')).status, 200)
      const isTold = ({ msg }: { msg: string }): boolean =>
        /^risky\.HoldPrimary threw where nobody catches it: nobody catches this \(.*hold-primary\.ts:\d+:\d+\)/.test(
          msg,
        )
      await until(() => heddle.logs.some(isTold), 'the line')
      assert.equal(await heddle.pid(), pid)
    },
  )

  await t.test('an event whose subscriber aborts the process is in the report with its id', async () => {
    // Whether it is answered before the process is gone is open.
    await heddle.post('/publish', { event: 'abort.asked', payload: { way: 'split' } }).catch(() => {})
    await replaced()
    const { in_flight, guilty } = (await reports()).at(-1)!
    const event = in_flight.find(({ kind }) => kind === 'event')!
    assert.equal(event.name, 'abort.asked')
    assert.match(event.id!, /^evt_[0-9a-f]{32}$/)
    assert.equal(guilty?.plugin, PLUGIN)
  })

  await t.test('a plugin that ends one process after the other is disabled, and the rest is served', async () => {
    await heddle.die('/abort/split')
    await replaced()
    const refused = await heddle.fetch('/abort/split')
    assert.equal(refused.status, 503)
    assert.ok(Number(refused.headers.get('retry-after')) > 0)
    assert.equal((await heddle.fetch('/waiting')).status, 200)
    assert.equal(await heddle.stop(), 0)
  })
})

test('a plugin that ends the process while it boots is left out, and everything else starts', async (t) => {
  const heddle = await startGuarded(t, {}, [ABORTING_AT_BOOT])
  const { plugins } = (await heddle.json('/system/status')).body
  const { status, error } = plugins['broken.AbortAtBoot']
  assert.equal(status, 'DEAD')
  assert.match(
    error,
    /It ended the process while it booted: the process died of SIG\w+: Fatal JavaScript invalid size error/,
  )
  assert.equal((await heddle.fetch('/waiting')).status, 200)
  const isTold = () =>
    heddle.logs.some(({ msg }) => /^The process before this one is dead.*abort-at-boot\.ts$/.test(msg))
  await until(isTold, 'its successor tells of it')
  assert.equal(await heddle.stop(), 0)
})
