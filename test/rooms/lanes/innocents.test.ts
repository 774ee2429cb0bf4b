import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { boxesOf } from './deadly.ts'

const INNOCENT = `
export default class Innocent {
  constructor({ http }) {
    http.addEndpoint('/takes', 'POST', (data) => ({ keys: Object.keys(data).length }))
    http.addEndpoint('/gives', 'GET', () => ({ list: Array.from({ length: 300_000 }, (_, n) => ({ n })) }))
    http.addEndpoint('/throws/:how', 'GET', ({ how }) => {
      const long = 'x'.repeat(5_000_000)
      if (how === 'text') throw long
      if (how === 'cause') throw new Error('short', { cause: new Error(long) })
      throw new Error(long)
    })
    http.addEndpoint('/fine', 'GET', () => ({ success: true }))
  }
}`
const KEYS = 90_000
/** What a lane may take before its loop counts as standing still. */
const STALL_MS = 100

test('the runtime reads bodies and writes answers in its own time: no plugin is blamed for it', async (t) => {
  const files = { 'shop/plugins/innocent.ts': INNOCENT }
  const env = { LANE_STALL_MS: String(STALL_MS) }
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, await folderOf(t, files)], lanes: 2, env })
  const body = JSON.stringify(Object.fromEntries(Array.from({ length: KEYS }, (_, n) => [`k${n}`, n % 10])))
  for (let round = 0; round < 5; round++) {
    await Promise.all(
      Array.from({ length: 4 }, () =>
        heddle
          .fetch('/takes', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
          .catch(() => {}),
      ),
    )
    if (round < 2)
      await heddle
        .fetch('/gives')
        .then((answer) => answer.arrayBuffer())
        .catch(() => {})
  }
  await until(async () => (await heddle.fetch('/fine').catch(() => null))?.status === 200, 'a lane', 120_000)
  for (const { guilty, message, stack } of await boxesOf(heddle)) {
    // The list is the handler's own: it may be caught while it makes it.
    assert.ok(
      guilty?.plugin == null || guilty.line !== null,
      `${message} ${JSON.stringify(guilty)} ${stack.join(' < ')}`,
    )
  }
  const told = heddle.logs.filter(({ msg }) => /lane of (?:its|their) own|disabled until/i.test(msg))
  assert.deepEqual(
    told.filter(({ msg }) => !/innocent\.ts/.test(msg)).map(({ msg }) => msg),
    [],
  )
})

test('an error with a text of 5 MB costs no more than another one, and is logged in short', async (t) => {
  const files = { 'shop/plugins/innocent.ts': INNOCENT }
  const env = { LANE_STALL_MS: '60000', HISTORY_ENABLED: 'true' }
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, await folderOf(t, files)], lanes: 1, env })
  const ROUNDS = 10
  const before = process.hrtime.bigint()
  for (let n = 0; n < ROUNDS; n++)
    for (const how of ['error', 'text', 'cause']) assert.equal((await heddle.fetch(`/throws/${how}`)).status, 500)
  t.diagnostic(`${Number(process.hrtime.bigint() - before) / 1e6 / (3 * ROUNDS)} ms each`)
  const failed = heddle.logs.filter(({ msg }) => msg.includes('/throws/:how failed'))
  assert.equal(failed.length, 3 * ROUNDS)
  for (const line of failed) {
    for (const value of Object.values(line))
      assert.ok(String(value).length < 5000, `${String(value).length} characters`)
    if (!line.msg.startsWith('GET /throws/:how failed: xxxx') || line.stack !== undefined)
      assert.match(String(line.line), /innocent\.ts:\d+/)
  }
  assert.deepEqual(await boxesOf(heddle), [])
  assert.equal(await heddle.stop(), 0)
})

const LOOPS = `
const loops = {
  ticks: () => process.nextTick(loops.ticks),
  microtasks: () => queueMicrotask(loops.microtasks),
  promises: () => Promise.resolve().then(loops.promises),
  awaits: async () => { for (;;) await null },
}
export default class Loop {
  constructor({ http }) {
    http.addEndpoint('/loop/:kind', 'GET', ({ kind }) => {
      setTimeout(loops[kind], 2000)
      return {}
    })
  }
}`
const WAITS = `
export default class Waits {
  constructor({ http }) {
    http.addEndpoint('/waits', 'GET', () => new Promise(() => {}))
  }
}`

test('a request that only waits is not blamed for a loop that another one has left', async (t) => {
  const folder = await folderOf(t, { 'bad/plugins/loop.ts': LOOPS, 'good/plugins/waits.ts': WAITS })
  const env = { LANE_STALL_MS: '1000' }
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes: 1, env })
  for (const [n, kind] of ['ticks', 'microtasks', 'promises', 'awaits'].entries()) {
    await until(async () => (await heddle.fetch(`/loop/${kind}`)).status === 200, kind)
    void heddle.fetch('/waits').catch(() => {})
    await until(async () => (await boxesOf(heddle)).length > n, `the death by ${kind}`, 60_000)
    const [box] = await boxesOf(heddle)
    // On a busy machine a loop may have had no core to stop with.
    const isKnown = box!.stack.some((frame) => !frame.includes('(node:'))
    const plugins = isKnown ? ['bad.Loop'] : box!.stack.length > 0 ? [undefined] : [box!.guilty?.plugin]
    assert.deepEqual([box!.guilty?.plugin], plugins, `${kind}: ${box!.stack.join(' < ')}`)
  }
})
