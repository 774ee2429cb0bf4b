import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plugin } from '#heddle/testing'
import logIn from '../../../domains/users/plugins/log-in.ts'
import summarizeDay from '../../../domains/users/plugins/summarize-day.ts'

/** Tests one plugin at a time, as its author would; they depend neither on threads nor on the database in use. */

const PASSWORD = 'correct horse battery staple'

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
