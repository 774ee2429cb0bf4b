import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plugin } from '#heddle/testing'
import createUser from '../../../domains/users/plugins/create-user.ts'
import logIn from '../../../domains/users/plugins/log-in.ts'
import sendWelcome from '../../../domains/users/plugins/send-welcome.ts'
import summarizeDay from '../../../domains/users/plugins/summarize-day.ts'

/** Tests one plugin at a time, as its author would; they depend neither on threads nor on the database in use. */

const PASSWORD = 'correct horse battery staple'
const ADA = { id: 'user-1', name: 'Ada', email: 'ada@example.com' }

test('a sign-up is announced without the password, and a taken e-mail is not announced again', async (t) => {
  const app = await plugin(t, createUser, { domain: 'users' })
  const created = await app.post('/users', { name: 'Ada', email: 'Ada@Example.com', password: PASSWORD })
  assert.equal(created.status, 201)
  const { data, request_id } = await app.event('user.created')
  assert.deepEqual(data, { id: created.body.data.id, name: 'Ada', email: 'ada@example.com' })
  assert.equal(request_id, created.headers.get('x-request-id'))

  assert.equal((await app.post('/users', { name: 'Eve', email: 'ada@example.com', password: PASSWORD })).status, 409)
  await app.idle()
  assert.equal(app.events().length, 1)
})

test('a user is welcomed once, however often the news comes', async (t) => {
  const app = await plugin(t, sendWelcome, { domain: 'users' })
  await app.tools.db.execute(
    'INSERT INTO users (id, name, email, password_hash, created_at) VALUES ($1, $2, $3, $4, $5)',
    [ADA.id, ADA.name, ADA.email, 'none', new Date()],
  )
  await app.publish('user.created', ADA)
  const welcome = await app.event('welcome.sent')
  assert.deepEqual(welcome.data, { user_id: ADA.id })
  await app.idle()

  await app.publish('user.created', ADA)
  await app.publish('user.created', { id: 'nobody', name: 'Nobody', email: 'nobody@example.com' })
  await app.idle()
  assert.deepEqual(
    app.tree().map(({ event, children }) => [event, children.map((child) => child.event)]),
    [
      ['user.created', ['welcome.sent']],
      ['user.created', []],
      ['user.created', []],
    ],
  )
})

test('an e-mail that nobody has is throttled like any other', async (t) => {
  const app = await plugin(t, logIn, { domain: 'users', env: { LOGIN_MAX_ATTEMPTS: '2' } })
  const statuses: number[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    statuses.push((await app.post('/login', { email: 'nobody@example.com', password: PASSWORD })).status)
  }
  assert.deepEqual(statuses, [401, 401, 429])
})

test('the daily summary is registered for the night, and says how many there are', async (t) => {
  const app = await plugin(t, summarizeDay, { domain: 'users' })
  const [job] = await app.jobs()
  assert.deepEqual([job!.name, job!.schedule], ['daily-summary', { kind: 'cron', expression: '0 3 * * *' }])
  await app.runJob('daily-summary')
  const { data, parent_id, request_id } = await app.event('users.daily_summary')
  assert.deepEqual([data.created, parent_id, request_id], [0, null, null])
})
