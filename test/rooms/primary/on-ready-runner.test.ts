import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { BlackBox, PluginHealth } from '../../../src/contracts/registry.ts'
import type { Lane } from '../../../src/primary/dispatch/lane.ts'
import { OnReadyRunner, READY_GRACE_MS } from '../../../src/primary/jobs/on-ready-runner.ts'
import { laneOf } from '../../support/fake-lane.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const UNKNOWN = { guilty: null } as BlackBox

/** Lanes without threads, and what they are told to run. */
function readyOf(t: TestContext) {
  const lanes: Lane[] = []
  const log: string[] = []
  const told: [Lane, string][] = []
  const onReady = new OnReadyRunner(
    () => lanes,
    (message) => void log.push(message),
  )
  const add = (...names: string[]): Lane => {
    const plugins = Object.fromEntries(
      names.map((name): [string, PluginHealth] => [name, { status: 'OK', domain: 'a', tools: [] }]),
    )
    const lane = laneOf(t, { manifest: { plugins } })
    lane.post = (message) => {
      if (message.type === 'ready') told.push([lane, message.plugin])
    }
    lanes.push(lane)
    return lane
  }
  const end = (lane: Lane, blackBox: BlackBox | null): void => {
    lanes.splice(lanes.indexOf(lane), 1)
    onReady.laneGone(lane, blackBox)
  }
  return { onReady, add, end, told, log }
}

test('each plugin runs once, whatever lanes host it, those that come later too', (t) => {
  const { onReady, add, told } = readyOf(t)
  const [first, second] = [add('a.A'), add('a.A', 'a.B')]
  onReady.run()
  onReady.run()
  assert.deepEqual(told, [
    [first, 'a.A'],
    [second, 'a.B'],
  ])
  onReady.done('a.A')
  onReady.done('a.B')
  const third = add('a.A', 'a.B', 'a.C')
  onReady.run()
  assert.deepEqual(told.at(-1), [third, 'a.C'])
})

test('another lane runs what a dead one had not finished, three times at most', (t) => {
  const { onReady, add, end, told, log } = readyOf(t)
  let lane = add('a.A', 'a.Kills')
  onReady.run()
  onReady.done('a.A')
  for (let n = 0; n < 3; n++) {
    const next = add('a.A', 'a.Kills')
    end(lane, UNKNOWN)
    lane = next
    if (n < 2) assert.deepEqual(told.at(-1), [lane, 'a.Kills'])
  }
  assert.equal(told.length, 4)
  assert.deepEqual(log, ['3 lanes died while they ran onReady of a.Kills: it is not run again'])
})

test('a death for which another plugin is known to be guilty does not count', (t) => {
  const { onReady, add, end, told, log } = readyOf(t)
  let lane = add('a.Long')
  onReady.run()
  const guilty = { plugin: 'a.Other', handler: null, line: null, evidence: 'stack' }
  for (let n = 0; n < 5; n++) {
    const next = add('a.Long')
    end(lane, { guilty } as BlackBox)
    lane = next
  }
  assert.equal(told.length, 6)
  assert.deepEqual(log, [])
})

test('a lane that leaves waits for an onReady for 5 s, and another lane begins it again', (t) => {
  const { onReady, add, end, told, log } = readyOf(t)
  let laterMs = 0
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + laterMs)
  let lane = add('a.Endless', 'a.Z')
  onReady.run()
  onReady.done('a.Z')
  for (let n = 0; n < 5; n++) {
    assert.equal(onReady.isBusy(lane), true)
    laterMs += READY_GRACE_MS
    assert.equal(onReady.isBusy(lane), false)
    const next = add('a.Endless', 'a.Z')
    end(lane, null)
    lane = next
    assert.deepEqual(told.splice(0).at(-1), [lane, 'a.Endless'])
  }
  assert.deepEqual(log, [])
})

test('no plugin waits for the onReady of another one', (t) => {
  const { onReady, add, told } = readyOf(t)
  const lane = add('a.Consumer', 'a.B')
  onReady.run()
  assert.deepEqual(told, [
    [lane, 'a.Consumer'],
    [lane, 'a.B'],
  ])
  onReady.done('a.Consumer')
  onReady.done('a.B')
  onReady.run()
  assert.equal(told.length, 2)
})

test('a consumer that onReady runs is closed before its lane ends, begins again in the next one, and holds up no other plugin', async (t) => {
  const domains = await folderOf(t, {
    'a/plugins/consume.ts': `import { once } from 'node:events'
      import { setTimeout as sleep } from 'node:timers/promises'
      import { plugin } from 'heddle'
      export default plugin(({ logger }) => {
        const leaving = new AbortController()
        return {
          async onReady() {
            logger.info('begun')
            await once(leaving.signal, 'abort')
            await sleep(200)
            logger.info('closed')
          },
          onStop: () => leaving.abort(),
        }
      })`,
    'a/plugins/other.ts': `import { plugin } from 'heddle'
      export default plugin(({ logger }) => ({ onReady: () => logger.info('other is ready') }))`,
  })
  const heddle = await startHeddle(t, { domains: [domains], lanes: 2 })
  const said = (text: string) => heddle.logs.filter(({ msg }) => msg === text).length
  await until(() => said('other is ready') === 1, 'the other')
  for (let n = 1; n <= 2; n++) {
    await until(() => said('begun') === n, 'the consumer')
    heddle.process.kill('SIGHUP')
    await until(() => said('closed') === n, 'its end')
  }
  await until(() => said('begun') === 3, 'the consumer')
  assert.equal(await heddle.stop(), 0)
  assert.deepEqual([said('begun'), said('closed'), said('other is ready')], [3, 3, 1])
})

test('a reload runs onReady of the plugins that it brings, and of no other again', async (t) => {
  const plugin = (name: string, body: string): string =>
    `export default class ${name} { constructor({ logger }) { this.log = logger } onReady() { this.log.info('${name} is ready'); ${body} } }`
  const domains = await folderOf(t, {
    'a/plugins/old.ts': plugin('Old', ''),
    'a/plugins/never.ts': plugin('Never', 'return new Promise(() => {})'),
  })
  const heddle = await startHeddle(t, { domains: [domains], lanes: 1 })
  const said = (text: string) => heddle.logs.filter(({ msg }) => msg === text || msg.startsWith(`${text} in `)).length
  await until(() => said('Never is ready') === 1 && said('Old is ready') === 1, 'the first run', 30_000)
  await writeFile(join(domains, 'a/plugins/fresh.ts'), plugin('Fresh', ''))
  heddle.process.kill('SIGHUP')
  await until(() => said('Fresh is ready') === 1, 'the new plugin', 60_000)
  await until(() => said('Reloaded') === 1, 'the reload', 60_000)
  const startedMs = performance.now()
  heddle.process.kill('SIGHUP')
  await until(() => said('Reloaded') === 2, 'the next reload', 60_000)
  t.diagnostic(`the second reload took ${Math.round(performance.now() - startedMs)} ms`)
  assert.equal(said('Fresh is ready'), 1)
  assert.equal(said('Old is ready'), 1)
  assert.ok(!heddle.logs.some(({ msg }) => msg.includes(' died: ')))
  assert.equal(await heddle.stop(), 0)
})
