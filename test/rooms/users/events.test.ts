import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeOnDatabases } from '../../support/databases.ts'
import { shareService } from '../../support/shared-service.ts'
import { until } from '../../support/until.ts'
import { CHEAP_AUTH, PASSWORD, UsersService } from '../../support/users-service.ts'

/** The first test causes two sign-ups, their welcomes, and two sign-ups that are published again. */
const PAYLOADS_BEFORE = 6

describeOnDatabases('events of the users', (database) => {
  let service: UsersService
  shareService(async (owner) => {
    // The hashes of the one are made as in production.
    const tools = database.name === 'SQLite' ? [] : [CHEAP_AUTH]
    service = await UsersService.start(owner, database, { LOG_LEVEL: 'debug' }, { tools })
    return service.heddle
  })

  test('a new user is welcomed once, and the whole tree carries the id of the request', async () => {
    const { id } = await service.createUser('ada@example.com', { 'x-request-id': 'sign-up-1' })
    const sent = await service.published('welcome.sent', 'user_id', id)
    const { data } = await service.published('user.created', 'id', id)
    assert.deepEqual(data, { id, name: 'Ada', email: 'ada@example.com' })

    const [created] = await service.records('user.created')
    const [welcome] = await service.records('welcome.sent')
    assert.deepEqual(
      [created!.parent_id, created!.request_id, created!.emitter, created!.payload_keys],
      [null, 'sign-up-1', 'users.CreateUser', ['id', 'name', 'email']],
    )
    assert.ok(created!.subscribers.includes('users.SendWelcome'))
    assert.deepEqual(
      [welcome!.parent_id, welcome!.request_id, welcome!.emitter, welcome!.payload_keys],
      [created!.id, 'sign-up-1', 'users.SendWelcome', ['user_id']],
    )
    assert.equal(sent.event.request_id, 'sign-up-1')

    // The insert, and the record of the welcome.
    await until(async () => (await service.calls('db.execute')) === 2, 'the welcome is written down')
    // The same event a second time, and an event of a deleted user.
    for (const unwelcome of [id, 'nobody']) await service.post(`/probe/created/${unwelcome}`, {})
    await until(async () => (await service.calls('db.execute')) === 4, 'both are looked at')
    const last = await service.createUser('last@example.com')
    await service.published('welcome.sent', 'user_id', last.id)
    const welcomed = (await service.payloads()).filter(({ event }) => event.event === 'welcome.sent')
    assert.deepEqual(
      welcomed.map(({ data }) => data.user_id),
      [id, last.id],
    )
  })

  test('the password, its hash and tokens are in no event and in no log line', async () => {
    await until(async () => (await service.payloads()).length === PAYLOADS_BEFORE, 'all of before')
    const { id } = await service.createUser('grace@example.com')
    await service.post('/users', { name: 'Eve', email: 'grace@example.com', password: PASSWORD })
    await service.post('/users', { name: '', email: 'eve@example.com', password: PASSWORD })
    await service.post('/login', { email: 'grace@example.com', password: `${PASSWORD}!` })
    const token = await service.logIn('grace@example.com')
    await service.published('welcome.sent', 'user_id', id)
    await service.as(token, 'DELETE', `/users/${id}`)
    await service.published('user.deleted', 'id', id)
    const payloads = (await service.payloads()).slice(PAYLOADS_BEFORE)
    assert.deepEqual(payloads.map(({ event }) => event.event).sort(), ['user.created', 'user.deleted', 'welcome.sent'])
    assert.equal(await service.heddle.stop(), 0)

    const everything = JSON.stringify([payloads, service.heddle.logs])
    for (const secret of [PASSWORD, 'scrypt$', token]) assert.ok(!everything.includes(secret), secret)
  })
})
