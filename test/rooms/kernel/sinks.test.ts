import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coreWaitMs } from '../../support/core-wait.ts'
import { folderOf, toolsWith } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const DOMAINS = {
  'a/plugins/caller.ts': `import { threadId } from 'node:worker_threads'
    export default class Caller {
      constructor({ http, abacus, registry }) {
        const heard = []
        registry.addMetricsSink((record) => { if (record.tool === 'abacus') heard.push({ ...record, atMs: Date.now() }) })
        http.addEndpoint('/add', 'GET', ({ count }) => {
          const before = heard.length
          for (let n = 0; n < Number(count); n++) abacus.add(1, n)
          return { thread: threadId, atOnce: heard.length - before }
        })
        http.addEndpoint('/heard', 'GET', async () => {
          await new Promise((resolve) => setTimeout(resolve, 20))
          return { thread: threadId, count: heard.length }
        })
        http.addEndpoint('/metrics', 'GET', () => ({ metrics: registry.getMetrics() }))
      } }`,
  'a/plugins/listens.ts': `export default class Listens {
      static thread = 'primary'
      constructor({ http, registry }) {
        const heard = []
        registry.addMetricsSink(() => { throw new Error('a bad sink') })
        registry.addMetricsSink((record) => {
          if (record.tool === 'abacus') heard.push(Date.now() - Date.parse(record.timestamp))
        })
        http.addEndpoint('/primary/heard', 'GET', () => ({ count: heard.length, latestMs: Math.max(0, ...heard) }))
        http.addEndpoint('/primary/metrics', 'GET', () => ({ metrics: registry.getMetrics() }))
      } }`,
}
const ABACUS = `export default class Abacus { name = 'abacus'; add(a, b) { return a + b } }`

test('metrics sinks hear every call of the process, their own at once and others soon', async (t) => {
  const heddle = await startHeddle(t, {
    domains: [await folderOf(t, DOMAINS)],
    env: { TOOLS_DIR: await toolsWith(t, { 'abacus/index.ts': ABACUS }) },
  })
  const calls = 5000
  const waitedMs = coreWaitMs(heddle.process.pid!)
  const { body } = await heddle.json(`/add?count=${calls}`)
  assert.equal(body.atOnce, calls, 'before the calls have returned')

  const primary = await until(async () => {
    const { body: heard } = await heddle.json('/primary/heard')
    return heard.count >= calls ? heard : undefined
  }, 'the sink in the primary')
  assert.equal(primary.count, calls)
  // Without the time in which others had its core.
  const lateMs = primary.latestMs - (coreWaitMs(heddle.process.pid!) - waitedMs)
  assert.ok(lateMs < 500, `${lateMs} ms late`)

  const perThread = new Map<number, number>()
  await until(async () => {
    for (const answer of await Promise.all([heddle.json('/heard'), heddle.json('/heard')])) {
      perThread.set(answer.body.thread, answer.body.count)
    }
    return perThread.size === 2 && [...perThread.values()].every((count) => count >= calls)
  }, 'the sinks in both lanes')
  assert.deepEqual([...perThread.values()], [calls, calls], 'each once')

  for (const path of ['/metrics', '/primary/metrics']) {
    const { metrics } = (await heddle.json(path)).body
    assert.equal(metrics.length, 1000, path)
    assert.ok(metrics.every(({ duration_ms }: { duration_ms: number }) => duration_ms >= 0))
  }
  assert.equal(heddle.logs.filter(({ msg }) => msg.includes('a bad sink')).length, 1)
  assert.equal(await heddle.stop(), 0)
})
