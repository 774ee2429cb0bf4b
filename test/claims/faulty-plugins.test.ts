import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf, toolsWith } from '../support/folder.ts'
import { startHeddle } from '../support/heddle.ts'
import { until } from '../support/until.ts'

const route = (path: string): string => `http.addEndpoint('${path}', 'GET', () => ({ path: '${path}' }))`
const primary = `static thread = 'primary'`

/** Every way for a plugin to fail, among some that do not. */
const FAULTY = {
  'a/plugins/computed-thread.ts': `const where = 'primary'
    export default class ComputedThread { static thread = where; constructor({ http }) { ${route('/computed')} } }`,
  'a/plugins/computed-in-function.ts': `import { plugin } from 'heddle'
    const thread = 'primary'
    export default plugin(() => {}, { thread })`,
  'a/plugins/fails-late.ts': `export default class FailsLate {
    constructor({ http, event_bus, scheduler }) {
      ${route('/late')}
      event_bus.subscribe('late', () => {})
      scheduler.every('late', 1000, () => {})
    }
    async onBoot() { throw new Error('late in the day') } }`,
  'a/plugins/fails-late-primary.ts': `export default class FailsLatePrimary { ${primary}
    constructor({ http, event_bus, scheduler }) {
      ${route('/late-primary')}
      event_bus.subscribe('late', () => {})
      scheduler.every('late', 1000, () => {})
    }
    onBoot() { throw new Error('late in the primary') } }`,
  'a/plugins/good.ts': `export default class Good {
    constructor({ http, registry, event_bus }) {
      ${route('/good')}
      http.addEndpoint('/dump', 'GET', () => registry.getSystemDump())
      http.addEndpoint('/topology', 'GET', () => event_bus.getTopology())
      http.addEndpoint('/late-request', 'GET', () => event_bus.request('late', {}).catch(({ code }) => ({ code })))
    } }`,
  'a/plugins/jobs.ts': `export default class Jobs { ${primary}
    constructor({ http, scheduler }) { http.addEndpoint('/jobs', 'GET', async () => ({ jobs: await scheduler.list() })) } }`,
  'a/plugins/lane-second.ts': `export default class LaneSecond { constructor({ http }) { ${route('/good')} } }`,
  'a/plugins/missing-tool.ts': `export default class MissingTool { constructor({ db, telegraph }) {} }`,
  'a/plugins/primary-first.ts': `export default class PrimaryFirst { ${primary}; constructor({ http }) { ${route('/first')} } }`,
  'a/plugins/rival.ts': `export default class Rival {
    constructor({ http, event_bus }) { ${route('/first')}; ${route('/rival')}; event_bus.subscribe('late', () => {}) } }`,
  'a/plugins/throws-nothing.ts': `export default class ThrowsNothing { constructor() { throw undefined } }`,
  'b/plugins/one.ts': `export default class Same { constructor({ http }) { ${route('/same-one')} } }`,
  'b/plugins/two.ts': `export default class Same { constructor({ http }) { ${route('/same-two')} } }`,
}

test('plugins that fail are dead with their error, and everybody else serves', async (t) => {
  const heddle = await startHeddle(t, { domains: [await folderOf(t, FAULTY)] })
  const { plugins } = await until(async () => {
    const { body } = await heddle.json('/dump')
    return body.plugins['a.Rival']?.status === 'DEAD' ? body : undefined
  }, 'the snapshot')
  const errorOf = (name: string): string => {
    assert.equal(plugins[name]?.status, 'DEAD', `${name}: ${JSON.stringify(plugins[name])}`)
    return plugins[name].error
  }
  const statusOf = async (path: string): Promise<number> => (await heddle.fetch(path)).status

  assert.deepEqual(plugins['a.Good'], { status: 'OK', domain: 'a', tools: ['http', 'registry', 'event_bus'] })
  assert.equal(errorOf('a.MissingTool'), 'Missing tool: telegraph')
  assert.deepEqual(plugins['a.MissingTool'].tools, ['db', 'telegraph'])
  assert.equal(typeof errorOf('a.ThrowsNothing'), 'string')
  assert.match(errorOf('a.ComputedThread'), /must be written as a literal/)
  assert.match(
    errorOf('a.ComputedInFunction'),
    /must be written as a literal: .*`\{ thread: 'primary' \}` in `export default plugin/,
  )
  assert.equal(await statusOf('/computed'), 404)

  assert.equal(errorOf('a.FailsLate'), 'late in the day')
  assert.equal(errorOf('a.FailsLatePrimary'), 'late in the primary')
  assert.equal(await statusOf('/late'), 404, 'registered before its plugin failed')
  assert.equal(await statusOf('/late-primary'), 404, 'registered before its plugin failed, in the primary')
  assert.deepEqual((await heddle.json('/late-request')).body, { code: 'EVENT_BUS_NO_SUBSCRIBER' })
  assert.deepEqual((await heddle.json('/jobs')).body, { jobs: [] })

  assert.match(errorOf('a.LaneSecond'), /GET \/good is registered already by a\.Good/)
  assert.match(errorOf('a.Rival'), /GET \/first is registered already by a\.PrimaryFirst/)
  assert.equal(await statusOf('/rival'), 404, 'all routes of a refused plugin are refused')
  assert.deepEqual((await heddle.json('/first')).body, { path: '/first' })

  assert.equal(plugins['b.Same'].status, 'OK')
  const [twin] = Object.keys(plugins).filter((name) => name.startsWith('b.Same ('))
  assert.match(errorOf(twin!), /another plugin named b\.Same/)
  assert.deepEqual([await statusOf('/same-one'), await statusOf('/same-two')], [200, 404])
  assert.equal(await heddle.stop(), 0)
})

test('a route belongs to the plugin of the primary, however fast the lanes boot', async (t) => {
  const domains = await folderOf(t, {
    // The others wait for it for a second.
    'a/plugins/first.ts': `import { setTimeout as sleep } from 'node:timers/promises'
      export default class First { ${primary}; #http; constructor({ http }) { this.#http = http }
        async onBoot() { await sleep(700); const http = this.#http; ${route('/first')} } }`,
    'a/plugins/dump.ts': `export default class Dump { ${primary}
      constructor({ http, registry }) { http.addEndpoint('/dump', 'GET', () => registry.getSystemDump()) } }`,
    'a/plugins/rival.ts': `export default class Rival { constructor({ http }) { ${route('/first')} } }`,
  })
  const heddle = await startHeddle(t, { domains: [domains] })
  const { plugins } = (await heddle.json('/dump')).body
  assert.equal(plugins['a.First'].status, 'OK', JSON.stringify(plugins))
  assert.match(plugins['a.Rival'].error, /GET \/first is registered already by a\.First/)
  assert.equal(await heddle.stop(), 0)
})

test('onReady runs in another lane when the lane that was at it dies', async (t) => {
  const domains = await folderOf(t, {
    'a/plugins/dies-once.ts': `import { existsSync, writeFileSync } from 'node:fs'
      export default class DiesOnce { #log; #mark
        constructor({ logger, config }) { this.#log = logger; this.#mark = config.get('SQLITE_PATH') + '.mark' }
        onReady() {
          if (existsSync(this.#mark)) return this.#log.info('ready at last')
          writeFileSync(this.#mark, '')
          process.exit(1)
        } }`,
  })
  const heddle = await startHeddle(t, { domains: [domains] })
  await until(() => heddle.logs.some(({ msg }) => msg === 'ready at last'), 'the second run')
  assert.equal(await heddle.stop(), 0)
  assert.equal(heddle.logs.filter(({ msg }) => / died: /.test(msg)).length, 1)
})

const HOOKS = `
import { isMainThread, threadId } from 'node:worker_threads'
`
test('hooks run where and as often as they say', async (t) => {
  const domains = await folderOf(t, {
    'a/plugins/worker.ts': `${HOOKS}
      const loadedIn = isMainThread
      export default class Worker {
        constructor({ logger, http }) { this.log = logger; ${route('/up')} }
        onBoot() { this.log.info('onBoot', { loadedIn, threadId }) }
        async onReady() { this.log.info('onReady', { threadId }) }
        async onStop() { await new Promise((resolve) => setTimeout(resolve, 20)); this.log.info('onStop', { threadId }) }
      }`,
    'a/plugins/primary.ts': `${HOOKS}
      const loadedIn = isMainThread
      export default class Primary { ${primary}
        constructor({ logger }) { this.log = logger }
        onBoot() { this.log.info('primary onBoot', { loadedIn, threadId }) }
        onReady() { this.log.info('primary onReady') }
        onStop() { this.log.info('primary onStop') }
      }`,
    'a/plugins/unready.ts': `export default class Unready {
      constructor({ http }) { ${route('/unready')} }
      onReady() { throw new Error('not ready at all') }
      onStop() { throw new Error('no stopping') } }`,
  })
  const heddle = await startHeddle(t, { domains: [domains], lanes: 3 })
  const lines = (name: string) => heddle.logs.filter(({ msg }) => msg === name)
  // Each thread writes its own lines, so they come in any order.
  await until(
    () => lines('onReady').length > 0 && lines('onBoot').length >= 3 && lines('primary onBoot').length > 0,
    'all hooks of the start',
  )
  assert.deepEqual(
    lines('onBoot').map(({ loadedIn }) => loadedIn),
    [false, false, false],
  )
  assert.equal(new Set(lines('onBoot').map(({ threadId }) => threadId)).size, 3)
  assert.deepEqual(
    lines('primary onBoot').map(({ loadedIn }) => loadedIn),
    [true],
  )
  assert.equal((await heddle.fetch('/unready')).status, 200, 'a plugin whose onReady fails stays')
  assert.equal(await heddle.stop(), 0)
  assert.equal(lines('onReady').length, 1)
  assert.equal(lines('primary onReady').length, 1)
  assert.equal(lines('primary onStop').length, 1)
  assert.equal(new Set(lines('onStop').map(({ threadId }) => threadId)).size, 3)
  assert.equal(lines('onStop').length, 3)
  assert.equal(heddle.logs.filter(({ msg }) => msg.includes('no stopping')).length, 3)
})

test('a tool of one’s own is injected and metered, one that does not boot takes only its users down', async (t) => {
  const tools = await toolsWith(t, {
    'abacus/index.ts': `export default class Abacus {
      name = 'abacus'
      add(a, b) { return a + b }
      async later(a) { if (a < 0) throw new Error('negative'); return a }
      #hidden() {}
    }`,
    'broken/index.ts': `export default class Broken {
      name = 'broken'
      boot() { throw new Error('no power') }
      use() {}
    }`,
    'store/index.ts': `export default class Store {
      name = 'store'
      constructor(runtime) { this.runtime = runtime }
      api() { return { odd: (kind) => this.runtime.callPrimary('odd', [kind]) } }
      async serve(method, [kind]) {
        if (kind === 'bigint') return { n: 1n }
        if (kind === 'cyclic') { const value = {}; value.self = value; return value }
        if (kind === 'function') return () => {}
        if (kind === 'error') throw Object.assign(new Error('odd'), { details: 1n })
        return kind
      }
    }`,
  })
  const domains = await folderOf(t, {
    'a/plugins/counts.ts': `export default class Counts {
      constructor({ http, abacus, registry, store }) {
        const { add } = abacus
        http.addEndpoint('/add', 'GET', async () => ({ sum: add(2, 3), later: await abacus.later(7) }))
        http.addEndpoint('/negative', 'GET', () => abacus.later(-1).catch(({ message }) => ({ message })))
        http.addEndpoint('/metrics', 'GET', () => ({ metrics: registry.getMetrics() }))
        http.addEndpoint('/dump', 'GET', () => registry.getSystemDump())
        http.addEndpoint('/odd/:kind', 'GET', async ({ kind }) => {
          try { return { value: await store.odd(kind) } } catch ({ message }) { return { message } }
        })
      } }`,
    'a/plugins/unlucky.ts': `export default class Unlucky { constructor({ http, broken }) { ${route('/unlucky')} } }`,
  })
  const heddle = await startHeddle(t, { domains: [domains], lanes: 1, env: { TOOLS_DIR: tools } })
  assert.deepEqual((await heddle.json('/add')).body, { sum: 5, later: 7 })
  assert.deepEqual((await heddle.json('/negative')).body, { message: 'negative' })
  const { metrics } = (await heddle.json('/metrics')).body
  const ofAbacus = metrics.filter(({ tool }: { tool: string }) => tool === 'abacus')
  assert.deepEqual(
    ofAbacus.map(({ method, success }: { method: string; success: boolean }) => [method, success]),
    [
      ['add', true],
      ['later', true],
      ['later', false],
    ],
  )
  for (const { duration_ms, timestamp } of ofAbacus) {
    assert.ok(duration_ms >= 0 && duration_ms < 1000)
    assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60_000, timestamp)
  }
  const dump = await until(async () => {
    const { body } = await heddle.json('/dump')
    return body.tools.abacus.message === null ? undefined : body
  }, 'the failed call in the snapshot')
  assert.deepEqual(dump.tools.abacus, { status: 'DEAD', message: 'negative', fault: 'tool' })
  assert.deepEqual(dump.tools.broken, { status: 'DEAD', message: 'no power', fault: 'tool' })
  assert.equal(dump.plugins['a.Unlucky'].status, 'DEAD')
  assert.match(dump.plugins['a.Unlucky'].error, /Tool broken did not boot: no power/)
  assert.equal((await heddle.fetch('/unlucky')).status, 404)
  assert.equal((await heddle.fetch('/add')).status, 200)
  await until(async () => {
    const { status, message } = (await heddle.json('/dump')).body.tools.abacus
    return status === 'OK' && message === 'Recovered from transient failure'
  }, 'the recovery')

  for (const kind of ['bigint', 'cyclic', 'function', 'error']) {
    const { status, body } = await heddle.json(`/odd/${kind}`)
    assert.equal(status, 200, kind)
    assert.ok('message' in body || body.value === null, `${kind}: ${JSON.stringify(body)}`)
  }
  assert.deepEqual((await heddle.json('/odd/fine')).body, { value: 'fine' })
  assert.equal(await heddle.stop(), 0)
})

test('a plugin that comes up in one lane and not in another does not take that one down', async (t) => {
  const domains = await folderOf(t, {
    'a/plugins/moody.ts': `import { mkdirSync } from 'node:fs'
      export default class Moody {
        constructor({ http, config }) { ${route('/moody')}; this.flag = config.get('MOODY_FLAG') }
        onBoot() { mkdirSync(this.flag) } }`,
    'a/plugins/slow.ts': `export default class Slow {
      constructor({ http }) {
        http.addEndpoint('/slow', 'GET', async () => { await new Promise((r) => setTimeout(r, 60)); return {} }) } }`,
  })
  const heddle = await startHeddle(t, { domains: [domains], env: { MOODY_FLAG: join(domains, 'taken') } })
  const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => heddle.json(n % 2 === 0 ? '/moody' : '/slow')))
  for (const { status } of answers) assert.ok(status === 200 || status === 500, String(status))
  assert.ok(answers.filter((_, n) => n % 2 === 1).every(({ status }) => status === 200))
  assert.deepEqual(
    heddle.logs.filter(({ msg }) => msg.includes(' died: ')),
    [],
  )
})
