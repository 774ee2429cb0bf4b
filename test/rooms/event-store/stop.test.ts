import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { onSqlite } from './databases.ts'

const SHUTDOWN_TIMEOUT_MS = 5000
const LONG_TIMEOUT_MS = 600_000

test('a stop says who holds it and what becomes of that, and keeps to its time', async (t) => {
  const held = /event order\.handled \(shop\.TakeOrders, for \d+\.\d s\)/.source
  const startHeld = async (shutdownTimeoutMs: number) => {
    const store = await onSqlite(t)
    assert.ok(store)
    const env = { EVENT_BUS_DRIVER: 'database', HOLD: 'wait handled', SHUTDOWN_TIMEOUT_MS: String(shutdownTimeoutMs) }
    const heddle = await store.start(env)
    await post(heddle, '/events', { event: 'order.handled', payload: { id: 'a' } })
    return heddle
  }
  const patient = await startHeld(LONG_TIMEOUT_MS)
  patient.process.kill('SIGTERM')
  const waits = await until(() => patient.logs.find(({ msg }) => msg.startsWith('Draining waits for ')), 'who holds it')
  const [, leftSec] = new RegExp(`^Draining waits for ${held}: (\\d+\\.\\d) s at most$`).exec(waits.msg) ?? []
  assert.ok(Number(leftSec) > 0 && Number(leftSec) * 1000 < LONG_TIMEOUT_MS, waits.msg)
  // By its own clock: else it ends with 1.
  const hurried = await startHeld(SHUTDOWN_TIMEOUT_MS)
  assert.equal(await hurried.stop(), 0)
  const given = hurried.logs.find(({ msg }) => msg.startsWith('Draining waits no longer'))
  const fate = 'events are handed back, and the next process delivers them again'
  assert.match(given?.msg ?? '', new RegExp(`^Draining waits no longer for ${held}: ${fate}$`))
})

test('a stop whose time is up says what is lost with a process that keeps its events in memory', async (t) => {
  const store = await onSqlite(t)
  assert.ok(store)
  const env = { EVENT_BUS_DRIVER: 'in_process', HOLD: 'wait handled', SHUTDOWN_TIMEOUT_MS: '500' }
  const heddle = await store.start(env)
  await post(heddle, '/events', { event: 'order.handled', payload: { id: 'a' } })
  assert.equal(await heddle.stop(), 0)
  const lost = heddle.logs.filter(({ msg }) => msg.includes('lost with this process')).map(({ msg }) => msg)
  assert.deepEqual(lost, ['1 event deliveries were not finished and are lost with this process'])
})

const LONG_JOB = `import { appendFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { plugin } from '#heddle'
const note = (text: string) => appendFile(process.env.NOTES!, text + '\\n')
export default plugin(({ http, event_bus, scheduler }) => {
  http.addEndpoint('/work', 'POST', async () => {
    for (let n = 0; n < 40; n++) await event_bus.publish('work.due', { n })
    return {}
  })
  scheduler.every('long', 100, async () => {
    await note('job')
    await sleep(60_000)
  })
  event_bus.subscribe('work.due', async () => {
    await note('begin')
    await sleep(300)
    await note('end')
  }, { concurrency: 1 })
})
`

test('while a stop waits for a job no event begins, and what has begun ends', async (t) => {
  const store = await onSqlite(t)
  assert.ok(store)
  const folder = await folderOf(t, { notes: '', 'domains/work/plugins/work.ts': LONG_JOB })
  const notes = join(folder, 'notes')
  const count = async (what: string) =>
    (await readFile(notes, 'utf8')).split('\n').filter((line) => line === what).length
  const heddle = await store.start({
    EVENT_BUS_DRIVER: 'database',
    SCHEDULER_ENABLED: 'true',
    SHUTDOWN_TIMEOUT_MS: String(SHUTDOWN_TIMEOUT_MS),
    DOMAINS_DIR: join(folder, 'domains'),
    NOTES: notes,
    LANE_ENV: 'NOTES',
  })
  await post(heddle, '/work', {})
  await until(async () => (await count('job')) > 0 && (await count('begin')) > 0, 'the job and the first event')
  const stopping = heddle.stop()
  await until(() => heddle.logs.some(({ msg }) => msg === 'SIGTERM: draining'), 'the drain')
  const begun = await count('begin')
  await stopping
  assert.ok((await count('begin')) <= begun + 1, `${await count('begin')} of ${begun}`)
  assert.equal(await count('end'), await count('begin'))
})
