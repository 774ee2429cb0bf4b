import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import contractsOfSystem from '../../../domains/system/events.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DIED = 'runtime.lane.died'
const ZOD = JSON.stringify(fileURLToPath(import.meta.resolve('zod')))
const ERROR = 50

const contracts = (field: string) => `
import { z } from ${ZOD}
export default {
  'order.placed': z.object({ ${field}: z.string() }),
  'order.slow': z.object({ id: z.string().refine(async (id) => id !== 'taken', 'is taken') }),
  'order.quoted': z.object({ item: z.string() }),
}
`

/** Publishes and asks for what it is told to. */
const desk = (thread: string) => `
export default class Desk${thread} {
  static thread = '${thread}'
  constructor({ http, event_bus, db }) {
    const tell = (calling) => calling.then((done) => ({ done }), ({ code, message, details }) => ({ code, message, details }))
    http.addEndpoint('/${thread}/publish', 'POST', ({ event, payload }) => tell(event_bus.publish(event, payload)))
    http.addEndpoint('/${thread}/request', 'POST', ({ event, payload }) => tell(event_bus.request(event, payload)))
    http.addEndpoint('/${thread}/careless', 'POST', ({ event, payload }) => event_bus.publish(event, payload))
    http.addEndpoint('/${thread}/tx', 'POST', ({ event }) => db.transaction((tx) => tx.publish(event, {})))
    http.addEndpoint('/${thread}/exit', 'POST', () => process.exit(3))
    if ('${thread}' === 'worker') event_bus.subscribe('order.quoted', function quote({ item }) { return { item, cents: 5 } })
    else {
      const deaths = []
      event_bus.subscribe('${DIED}', function count(data) { deaths.push(data) })
      http.addEndpoint('/deaths', 'GET', () => ({ deaths }))
    }
  }
}
`

test('contracts hold in every thread of a process, and a reload brings new ones', { timeout: 120_000 }, async (t) => {
  const folder = await folderOf(t, {
    'orders/events.ts': contracts('id'),
    'orders/plugins/desk.ts': desk('worker'),
    'orders/plugins/desk-primary.ts': desk('primary'),
    'torn/events.ts': 'export default {\n  a: = 1\n}',
    'torn/plugins/stand.ts':
      "export default class Stand { constructor({ http }) { http.addEndpoint('/stands', 'GET', () => ({ up: true })) } }",
  })
  const heddle = await startHeddle(t, { domains: [SHIPPED, folder], lanes: 2 })
  const post = async (path: string, event: string, payload: object) => {
    return heddle.post(path, { event, payload })
  }
  const records = async () => {
    const { body } = await heddle.json('/system/traces/flat')
    return body.map(({ event }: { event: string }) => event).filter((event: string) => event.startsWith('order.'))
  }
  const errors = () =>
    heddle.logs.filter(({ level }) => level >= ERROR).map(({ identity, msg }) => `${identity}: ${msg}`)

  for (const thread of ['worker', 'primary']) {
    for (const call of ['publish', 'request']) {
      const { body } = await post(`/${thread}/${call}`, 'order.placed', { id: 5 })
      assert.equal(body.code, 'EVENT_CONTRACT')
      assert.deepEqual(body.details, [{ path: 'id', message: 'Invalid input: expected string, received number' }])
      assert.ok(body.message.includes(join(folder, 'orders/events.ts')), body.message)
      assert.equal((await post(`/${thread}/${call}`, 'order.slow', { id: 'taken' })).body.code, 'EVENT_CONTRACT')
    }
  }
  assert.deepEqual(await records(), [])
  assert.equal((await heddle.json('/system/events')).body.topology['order.placed']?.fire_count ?? 0, 0)

  for (const thread of ['worker', 'primary']) {
    for (const event of ['order.placed', 'order.slow', 'order.free']) {
      assert.match((await post(`/${thread}/publish`, event, { id: 'o1' })).body.done, /^evt_/)
    }
    const { body } = await post(`/${thread}/request`, 'order.quoted', { item: 'loom' })
    assert.deepEqual(body.done, { item: 'loom', cents: 5 })
  }
  const one = ['order.free', 'order.placed', 'order.quoted', 'order.slow']
  await until(async () => (await records()).length >= 8, 'the records of what fitted')
  assert.deepEqual(
    (await records()).sort(),
    one.flatMap((event) => [event, event]),
  )

  await post('/worker/tx', 'order.stored', {})
  const warnings = () => heddle.logs.filter(({ msg }) => msg.includes('no contract declares it')).map(({ msg }) => msg)
  await until(() => warnings().some((msg) => msg.includes('order.stored')), 'the warning of the transaction')
  const [free, ...others] = warnings()
  assert.match(
    free!,
    /'order\.free' is published by orders\.Deskworker at .*orders\/plugins\/desk\.ts:6, .*Fix: .*orders\/events\.ts$/,
  )
  assert.equal(others.length, 1, 'once per event, whichever threads publish it')
  assert.match(others[0]!, /'order\.stored' is published by orders\.Deskworker at .*desk\.ts:9, /)

  const torn = errors().filter((line) => line.startsWith('event_bus: '))
  assert.equal(torn.length, 1, 'of all threads, one says it')
  assert.match(torn[0]!, /^event_bus: .*torn\/events\.ts: .*:2:\d+: ERROR: .*Its events are not checked$/)
  assert.deepEqual((await heddle.json('/stands')).body, { up: true })

  const careless = await post('/worker/careless', 'order.placed', { id: 'o1', items: [] })
  assert.equal(careless.status, 200)
  const refused = await post('/worker/careless', 'order.placed', {})
  assert.deepEqual([refused.status, refused.body], [500, { success: false, error: 'Internal server error' }])
  await until(
    () => errors().some((line) => /^orders\.Deskworker: .*The payload of order\.placed .*: id: /.test(line)),
    'the log',
  )

  assert.equal((await post('/worker/exit', 'any', {})).status, 500)
  const deaths = async () => (await heddle.json('/deaths')).body.deaths
  await until(async () => (await deaths()).length === 1, 'the death is told', 30_000)
  const [death] = await deaths()
  assert.deepEqual(z.strictObject(contractsOfSystem[DIED].shape).parse(death), death)

  await writeFile(join(folder, 'orders/events.ts'), contracts('number'))
  await writeFile(join(folder, 'torn/events.ts'), 'export const contracts = {}')
  heddle.process.kill('SIGHUP')
  await until(() => heddle.logs.some(({ msg }) => msg.startsWith('Reloaded')), 'the reload', 60_000)
  const { body } = await post('/worker/publish', 'order.placed', { id: 'o1' })
  assert.deepEqual(body.details, [{ path: 'number', message: 'Invalid input: expected string, received undefined' }])
  assert.match((await post('/worker/publish', 'order.placed', { number: 'o1' })).body.done, /^evt_/)
  assert.equal(errors().filter((line) => line.includes('torn/events.ts: it has no default export')).length, 1)
})
