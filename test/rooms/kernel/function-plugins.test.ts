import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const ZOD = JSON.stringify(fileURLToPath(import.meta.resolve('zod')))

/** The same plugin for a lane and for the primary. */
const greeter = (prefix: string, options: string): string => `
import { plugin } from 'heddle'
import { z } from ${ZOD}

export default plugin(async ({ http, db, event_bus, logger }) => {
  await db.execute('CREATE TABLE IF NOT EXISTS ${prefix}_seen (name TEXT PRIMARY KEY)')
  const seen = { query: z.object({ times: z.coerce.number().default(1) }), tags: ['${prefix}'], summary: 'Greets' }
  http.get('/${prefix}/hello/:name', seen, ({ name, times }) => ({ hello: name, times: times + 1 }))
  http.post('/${prefix}/names', { body: z.object({ name: z.string() }) }, async ({ name }, context) => {
    await db.transaction(async (tx) => {
      await tx.execute('INSERT INTO ${prefix}_seen (name) VALUES ($1)', [name])
      await tx.publish('${prefix}.seen', { name })
    })
    context.setStatus(201)
    return { name }
  })
  event_bus.subscribe('${prefix}.seen', async function welcome({ name }) {
    await event_bus.publish('${prefix}.welcomed', { name })
  })
  return {
    onReady: () => logger.info('${prefix} is ready'),
    onStop: () => logger.info('${prefix} stops'),
  }
}${options})
`

const FILES = {
  'shop/plugins/greet-in-lane.ts': greeter('lane', ''),
  'shop/plugins/greet-in-primary.ts': greeter('primary', ", { thread: 'primary' }"),
  'shop/plugins/watch.ts': `import { plugin } from 'heddle'
export default plugin(({ http, registry, event_bus }) => {
  http.get('/status', () => registry.getSystemDump())
  http.get('/routes', async () => ({ routes: await registry.getRoutes() }))
  http.get('/history', async () => ({ events: await event_bus.getTraceHistory() }))
  http.get('/calls', () => ({ calls: registry.getMetrics().map(({ tool, method }) => tool + '.' + method) }))
})`,
}

test('a plugin as a function lives in a lane and in the primary as a class does', async (t) => {
  const heddle = await startHeddle(t, { domains: [await folderOf(t, FILES)] })
  const { body: status } = await heddle.json('/status')
  const { body: routing } = await heddle.json('/routes')
  for (const [prefix, name, host] of [
    ['lane', 'shop.GreetInLane', 'lanes'],
    ['primary', 'shop.GreetInPrimary', 'primary'],
  ] as const) {
    const tools = ['http', 'db', 'event_bus', 'logger']
    assert.deepEqual(status.plugins[name], { status: 'OK', domain: 'shop', tools })
    const route = routing.routes.find(({ path }: { path: string }) => path === `/${prefix}/hello/:name`)
    assert.equal(route.plugin, name)
    assert.equal(route.host, host)
    assert.equal(route.summary, 'Greets')
    assert.ok(route.schemas.query)

    const body = JSON.stringify({ name: 'ada' })
    const headers = { 'content-type': 'application/json' }
    assert.deepEqual((await heddle.json(`/${prefix}/hello/ada?times=2`)).body, { hello: 'ada', times: 3 })
    assert.equal((await heddle.json(`/${prefix}/hello/ada?times=x`)).status, 422)
    const made = await heddle.json(`/${prefix}/names`, { method: 'POST', headers, body })
    assert.deepEqual([made.status, made.body], [201, { name: 'ada' }])

    const [seen, welcomed] = await until(async () => {
      const { body: history } = await heddle.json('/history')
      const named = (event: string) => history.events.find((each: { event: string }) => each.event === event)
      return named(`${prefix}.welcomed`) && [named(`${prefix}.seen`), named(`${prefix}.welcomed`)]
    }, 'the second event')
    assert.equal(seen.emitter, name)
    assert.deepEqual(seen.subscribers, [name])
    assert.equal(welcomed.parent_id, seen.id)
  }
  const { body: metrics } = await heddle.json('/calls')
  for (const call of ['http.get', 'http.post', 'db.transaction', 'event_bus.subscribe'])
    assert.ok(metrics.calls.includes(call), call)
  const said = (what: string) => heddle.logs.filter(({ msg }) => msg === what).length
  await until(async () => said('lane is ready') + said('primary is ready') === 2, 'onReady')
  assert.equal(await heddle.stop(), 0)
  assert.deepEqual([said('lane stops'), said('primary stops')], [2, 1])
})
