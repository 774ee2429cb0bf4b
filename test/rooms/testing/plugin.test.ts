import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JobRun, Plugin, type Tools } from '#heddle'
import { plugin } from '#heddle/testing'
import sayHello from '../../../domains/examples/plugins/say-hello.ts'
import Meet from '../../fixtures/identified/club/plugins/meet.ts'
import Visit from '../../fixtures/identified/visitors/plugins/visit.ts'
import OpenTicket from '../../fixtures/testing/desk/plugins/open-ticket.ts'

const CLUB = new URL('../../fixtures/identified/club', import.meta.url)
const VISITORS = new URL('../../fixtures/identified/visitors', import.meta.url)
const DESK = new URL('../../fixtures/testing/desk', import.meta.url)

test('one plugin has its tables, those that they depend on, its routes and its events', async (t) => {
  const app = await plugin(t, OpenTicket, { domain: DESK })
  assert.ok(app.plugin instanceof OpenTicket)
  const { body } = await app.post('/tickets')
  const { data, emitter } = await app.event('ticket.assigned', { where: ({ data }) => data.id === body.data.id })
  assert.deepEqual([data, emitter], [{ id: body.data.id }, 'desk.OpenTicket'])
  assert.deepEqual(await app.tools.db.queryOne('SELECT assigned FROM tickets'), { assigned: 1 })
  assert.equal((await app.tools.db.query('SELECT id FROM users')).length, 0)
  assert.deepEqual(
    app.tree().map(({ event, children }) => [event, children.map((child) => child.event)]),
    [['ticket.opened', ['ticket.assigned']]],
  )

  await assert.rejects(app.publish('ticket.opened', { id: 7 }), { code: 'EVENT_CONTRACT' })
  await app.publish('ticket.cursed', { id: 'x' })
  await app.idle()
  const [letter] = await app.deadLetters()
  assert.deepEqual([letter!.subscriber, letter!.error, letter!.attempts], ['desk.OpenTicket', 'the desk is on fire', 2])
  await assert.rejects(
    app.event('ticket.closed', { timeoutMs: 1 }),
    /ticket\.opened \{ id \} by desk\.OpenTicket\n {4}ticket\.assigned \{ id \} by desk[\s\S]*failed at ticket\.cursed/,
  )
})

test('a plugin as a function has the name of its file', async (t) => {
  const app = await plugin(t, sayHello)
  assert.deepEqual((await app.get('/hello/ada')).body.data, { hello: 'ada' })
  const [route] = await app.tools.registry.getRoutes()
  assert.equal(route!.plugin, 'test.SayHello')
})

class Odd extends Plugin {
  #http
  #scheduler
  readonly limit: number
  readonly log: Tools['logger']
  stopped = false

  constructor({ config, http, logger, scheduler }: Tools) {
    super()
    this.#http = http
    this.#scheduler = scheduler
    this.limit = config.get('ODD_LIMIT', { default: 1 })
    this.log = logger
  }

  override onBoot() {
    this.#http.get('/fail', () => {
      throw new Error('not today')
    })
    this.#http.put('/echo', (_data, context) => {
      context.setCookie('seen', 'yes')
      return { body: String(context.body), type: context.headers['content-type'], who: context.headers.authorization }
    })
    this.#http.post('/bytes', { body: 'stream', maxBytes: 100_000 }, async (_data, { body }) => ({
      bytes: (await body.bytes()).byteLength,
    }))
    this.#http.post('/parts', { body: 'multipart' }, async (_data, { body }) => {
      const names: (string | null)[] = []
      for await (const part of body) names.push(part.filename)
      return { names }
    })
    this.#http.addStream('/ticks', (_data, stream) => {
      stream.send({ tick: 1 })
      stream.close()
    })
    this.#scheduler.cron('nightly', '0 3 * * *', this.work)
  }

  work({ attempt }: JobRun) {
    this.log.info(`worked, attempt ${attempt}`)
  }

  override onStop() {
    this.stopped = true
  }
}

test('a plugin without a domain has variables, jobs, streams and a log, and is stopped with its test', async (t) => {
  const app = await plugin(t, Odd, { env: { ODD_LIMIT: '7' } })
  assert.equal(app.plugin.limit, 7)

  assert.deepEqual((await app.post('/bytes', Buffer.alloc(90_000))).body, { bytes: 90_000 })
  const stream = ReadableStream.from([Buffer.alloc(60_000), Buffer.alloc(60_000)])
  assert.equal((await app.post('/bytes', stream)).status, 413)
  const form = new FormData()
  form.append('file', new Blob(['x']), 'x.txt')
  assert.deepEqual((await app.post('/parts', form)).body, { names: ['x.txt'] })

  const failed = await app.get('/fail')
  assert.deepEqual([failed.status, failed.body.error], [500, 'Internal server error'])
  const line = app.logs.find(({ level }) => level === 'ERROR')!
  assert.deepEqual([line.identity, line.message], ['test.Odd', '/fail failed: not today'])

  const echo = await app.request('put', '/echo', { body: 'a text', token: 'abc' })
  assert.deepEqual(echo.body, { body: 'a text', type: 'text/plain;charset=UTF-8', who: 'Bearer abc' })
  assert.match(echo.headers.get('set-cookie')!, /^seen=yes; /)
  assert.match((await app.get('/ticks')).body, /^data: \{"tick":1\}$/m)
  assert.equal((await app.get('/nowhere')).status, 404)

  assert.deepEqual(
    (await app.jobs()).map(({ plugin, name, fires_here }) => [plugin, name, fires_here]),
    [['test.Odd', 'nightly', false]],
  )
  await app.runJob('nightly', { attempt: 2 })
  assert.ok(app.logs.some(({ message }) => message === 'worked, attempt 2'))
  const { id } = await app.tools.scheduler.runNow('nightly', { plugin: 'test.Odd' })
  assert.match(id, /^job_/)
  assert.ok(app.logs.some(({ message }) => message === 'worked, attempt 1'))
  await assert.rejects(app.runJob('daily'), /There is no job daily; there are: nightly/)

  await app.stop()
  assert.equal(app.plugin.stopped, true)
})

test('a plugin that does not come up rejects with what it threw', async (t) => {
  class Missing extends Plugin {
    constructor({ telegraph }: Tools & { telegraph?: unknown }) {
      super()
      assert.fail(String(telegraph))
    }
  }
  class Failing extends Plugin {
    override async onBoot() {
      throw new Error('not today')
    }
  }
  await assert.rejects(plugin(t, Missing), /Missing tool: telegraph/)
  await assert.rejects(plugin(t, Failing), /not today/)
  await assert.rejects(plugin(t, Failing, { domain: 'nowhere' }), /There is no domain nowhere/)
})

test('the hooks of the domain and of the application run for one plugin, too', async (t) => {
  const club = await plugin(t, Meet, { domain: CLUB })
  assert.equal((await club.get('/club/admin')).status, 401)
  assert.deepEqual((await club.get('/club/admin', { token: 'ada' })).body, { isAdmin: true })
  assert.deepEqual((await club.get('/club/admin', { token: 'bob' })).body, { isAdmin: false })
  const visitors = await plugin(t, Visit, { domain: VISITORS })
  const visit = (name: string) =>
    visitors.post('/visits', {}, { headers: { 'idempotency-key': 'one', ...(name && { 'x-name': name }) } })
  assert.deepEqual([(await visit('')).status, (await visit('eve')).body.by], [401, 'eve'])
})

test('a test says who calls', async (t) => {
  const app = await plugin(t, Meet, { domain: CLUB, user: { id: 'grace', isAdmin: true } })
  assert.deepEqual((await app.get('/club/me', { token: 'bob' })).body, { me: { id: 'grace', isAdmin: true } })
  assert.deepEqual((await app.get('/club/admin')).body, { isAdmin: true })
  const meet = () => app.post('/club/meetings', {}, { headers: { 'idempotency-key': 'one' } })
  const first = await meet()
  app.user = { id: 'eve' }
  const other = await meet()
  assert.notEqual(other.body.id, first.body.id)
  app.user = null
  assert.equal((await app.get('/club/admin')).status, 401)
  app.user = undefined
  assert.deepEqual((await app.get('/club/me', { token: 'bob' })).body, { me: { id: 'bob', isAdmin: false } })
})
