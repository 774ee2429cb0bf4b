import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { type PluginApp, plugin } from '#heddle/testing'
import logIn from '../../../domains/users/plugins/log-in.ts'
import summarizeDay from '../../../domains/users/plugins/summarize-day.ts'
import { until } from '../../support/until.ts'

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

test('attempts start anew after a good login, and when the window is over', async (t) => {
  // On a busy machine three attempts may take longer than a short window.
  for (let windowMs = 1500; ; windowMs *= 4) {
    const env = { LOGIN_MAX_ATTEMPTS: '2', LOGIN_WINDOW_MS: String(windowMs) }
    const app = await plugin(t, logIn, { domain: 'users', env })
    await addUser(app, 'ada@example.com', new Date())
    const attempt = async (password: string) =>
      (await app.post('/login', { email: 'ada@example.com', password })).status
    for (let round = 0; round < 2; round++)
      assert.deepEqual([await attempt('wrong password'), await attempt(PASSWORD)], [401, 200])

    const startedMs = Date.now()
    const refused: number[] = []
    while (refused.length < 3) refused.push(await attempt('wrong password'))
    if (Date.now() - startedMs > windowMs) continue
    assert.deepEqual(refused, [401, 401, 429])
    // A refused attempt does not make the window longer.
    await until(async () => (await attempt(PASSWORD)) === 200, 'free again', 2 * windowMs + 30_000)
    return assert.ok(Date.now() - startedMs >= windowMs - 10)
  }
})

test('the daily summary is registered for the night, and counts the users of the last 24 hours', async (t) => {
  const app = await plugin(t, summarizeDay, { domain: 'users' })
  const [job] = await app.jobs()
  assert.deepEqual([job!.name, job!.schedule], ['daily-summary', { kind: 'cron', expression: '0 3 * * *' }])
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000)
  for (const [email, hours] of [
    ['now@example.com', 0],
    ['today@example.com', 23],
    ['before@example.com', 25],
  ] as const)
    await addUser(app, email, hoursAgo(hours))
  await app.runJob('daily-summary')
  const { data, parent_id, request_id } = await app.event('users.daily_summary')
  assert.deepEqual([data.created, parent_id, request_id], [2, null, null])
  assert.equal(Date.parse(String(data.until)) - Date.parse(String(data.since)), 24 * 3_600_000)
})

async function addUser({ tools }: PluginApp, email: string, createdAt: Date): Promise<void> {
  await tools.db.execute('INSERT INTO users (id, name, email, password_hash, created_at) VALUES ($1, $2, $3, $4, $5)', [
    randomUUID(),
    'Ada',
    email,
    await tools.auth.hashPassword(PASSWORD),
    createdAt.toISOString(),
  ])
}
