import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { EventRecord } from '../../src/contracts/event-bus.ts'
import { Fleet, type Replica } from '../support/replicas.ts'
import { describeOnPostgresAndRedis } from '../support/servers/both-of-suite.ts'
import { until } from '../support/until.ts'

const ANSWERING = fileURLToPath(new URL('../rooms/elastic/answering', import.meta.url))
const NAME = 'two replicas on one PostgreSQL and one Redis'
/** Enough for both to have a share, whatever the order. */
const USERS = 100
const PASSWORD = 'correct horse battery staple'

interface Node {
  id: string
  event: string
  children: Node[]
}

describeOnPostgresAndRedis(NAME, ({ postgres, redis, owner }) => {
  let fleet: Fleet
  let a: Replica
  let b: Replica
  const createUser = (replica: Replica, email: string, headers = {}) =>
    replica.post('/users', { name: 'Ada', email, password: PASSWORD }, headers)
  const recordsOf = async (replica: Replica, event: string): Promise<EventRecord[]> =>
    ((await replica.json('/system/traces/flat')).body as EventRecord[]).filter((record) => record.event === event)

  test('boot without touching the schema', async () => {
    fleet = await Fleet.start(owner, { postgres, redis, env: { LOGIN_MAX_ATTEMPTS: '6' } })
    ;[a, b] = await Promise.all([
      fleet.replica('a', { env: { SCHEDULER_ENABLED: 'true' } }),
      fleet.replica('b', { domains: [ANSWERING] }),
    ])
    assert.equal((await a.fetch('/system/health/ready')).status, 200)
    assert.equal((await b.fetch('/system/health/ready')).status, 200)
  })

  test('a user created through one is handled on exactly one of them, which shows where it came from', async () => {
    const { status } = await createUser(a, 'first@example.com', { 'x-request-id': 'sign-up-1' })
    assert.equal(status, 201)
    await until(async () => (await fleet.seen('user.witnessed')).length === 1, 'the child is handled')
    await until(async () => (await fleet.unfinished('user.created')) === 0, 'its parent, too')
    const [handled, ...more] = await fleet.seen('user.created')
    assert.deepEqual(more, [])
    assert.deepEqual([handled!.parent_id, handled!.request_id], [null, 'sign-up-1'])
    const handler = handled!.replica === 'a' ? a : b
    const [record] = await recordsOf(handler, 'user.created')
    assert.deepEqual(
      [record!.id, record!.parent_id, record!.request_id, record!.emitter],
      [handled!.event_id, null, 'sign-up-1', 'users.CreateUser'],
    )
    const tree = (await handler.json('/system/traces/tree')).body as Node[]
    const root = tree.find(({ id }) => id === record!.id)!
    assert.ok(
      root.children.some(({ event }) => event === 'user.witnessed'),
      JSON.stringify(tree),
    )
  })

  test('of many users each is handled once, some here and some there', async () => {
    const known = (await fleet.seen('user.created')).length
    const statuses = new Map<number, number>()
    let next = 0
    const client = async (): Promise<void> => {
      while (next < USERS) {
        const number = next++
        const { status } = await createUser(a, `user-${number}@example.com`, { 'x-request-id': `user-${number}` })
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: 16 }, client))
    assert.deepEqual([...statuses], [[201, USERS]])
    await until(async () => (await fleet.seen('user.witnessed')).length >= known + USERS, 'all are handled', 60_000)
    await until(async () => (await fleet.unfinished('user.created')) === 0, 'all are acknowledged')
    const seen = await fleet.seen('user.created')
    assert.equal(seen.length, known + USERS)
    assert.equal(new Set(seen.map(({ event_id }) => event_id)).size, known + USERS)
    const shares = ['a', 'b'].map((id) => seen.filter(({ replica }) => replica === id).length)
    assert.ok(Math.min(...shares) > USERS / 20, `both have a share: ${shares}`)

    // The tree holds across both: most children are handled by the other one.
    const children = await fleet.seen('user.witnessed')
    assert.equal(children.length, known + USERS)
    const parents = new Map(seen.map((parent) => [parent.event_id, parent]))
    for (const child of children) assert.equal(child.request_id, parents.get(child.parent_id!)?.request_id)
    const elsewhere = children.filter(({ parent_id, replica }) => parents.get(parent_id!)!.replica !== replica)
    assert.ok(elsewhere.length > 0)
    // And each of those that the traces still hold has its origin there.
    for (const replica of [a, b]) {
      for (const { id, parent_id, request_id } of await recordsOf(replica, 'user.witnessed')) {
        const parent = parents.get(parent_id!)
        assert.equal(request_id, parent?.request_id, id)
      }
    }
    const welcomed = await fleet.sql('SELECT id FROM users WHERE welcomed_at IS NOT NULL')
    assert.equal(welcomed.length, known + USERS)
  })

  test('a token that one has made is valid on the other', async () => {
    const { body } = await a.post('/login', { email: 'first@example.com', password: PASSWORD })
    const me = await b.json('/users/me', { headers: { authorization: `Bearer ${body.data.token}` } })
    assert.deepEqual([me.status, me.body.data.email], [200, 'first@example.com'])
  })

  test('a rate limit counts across both', async () => {
    const attempts = Array.from({ length: 10 }, (_, n) =>
      (n % 2 === 0 ? a : b).post('/login', { email: 'user-1@example.com', password: 'wrong password' }),
    )
    const statuses = (await Promise.all(attempts)).map(({ status }) => status).sort()
    assert.deepEqual(statuses, [401, 401, 401, 401, 401, 401, 429, 429, 429, 429])
  })

  test('a request is answered by a subscriber that only the other one has', async () => {
    assert.deepEqual((await a.json('/ask')).body, { from: 'b' })
    assert.deepEqual((await b.json('/ask')).body, { from: 'b' })
  })

  test('jobs fire only where the scheduler is enabled, and are registered everywhere', async () => {
    const beats = ({ logs }: Replica): number => logs.filter(({ msg }) => msg === 'beat').length
    await until(() => beats(a) >= 3, 'the beat fires')
    assert.equal(beats(b), 0)
    for (const replica of [a, b]) {
      const { jobs } = (await replica.json('/jobs')).body
      assert.ok(jobs.some(({ name }: { name: string }) => name === 'beat'))
    }
  })
})
