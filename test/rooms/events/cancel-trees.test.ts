/** An event that is taken back with everything that it has caused. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'
import { onPostgres, onSqlite } from '../event-store/databases.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/trees', import.meta.url))

interface Seen {
  begun: string[]
  ids: Record<string, string>
  reasons: Record<string, string>
  dead: { id: string; error: string }[]
  replays: { outcome: string; error?: string }[]
}

const seenBy = async (heddle: Heddle): Promise<Seen> => (await heddle.json('/seen')).body
const grow = async (heddle: Heddle, branch: object): Promise<string> => (await heddle.post('/grow', branch)).body.id
const cancel = async (heddle: Heddle, id: string, more: object = {}) =>
  (await heddle.post('/cancel', { id, ...more })).body
const haveBegun = (heddles: readonly Heddle[], names: readonly string[]) =>
  until(
    () => names.every((name) => heddles.some(({ logs }) => logs.some(({ msg }) => msg === `${name} has begun`))),
    `the handlers of ${names.join(', ')}`,
  )
const LONG = { delayMs: 600_000 }

/** Three generations over several names: of the last two some have ended, run, wait, are delayed, or are between two attempts. */
const TREE = {
  name: 'root',
  children: [
    {
      name: 'ended',
      children: [
        {
          name: 'runs',
          stays: true,
          late: [
            { name: 'late', children: [{ name: 'later' }] },
            { name: 'late delayed', delayMs: 500 },
            { name: 'late keyed', key: 'k' },
          ],
        },
        { name: 'delayed', ...LONG },
        { name: 'tried', event: 'tree.tries', fails: true },
        {
          name: 'ended too',
          children: [
            { name: 'queued', event: 'tree.queues' },
            { name: 'deep', stays: true },
            { name: 'keyed', key: 'k', ...LONG },
          ],
        },
      ],
    },
    { name: 'delayed child', ...LONG },
  ],
}
const NEVER = ['delayed', 'queued', 'keyed', 'delayed child', 'late', 'later', 'late delayed', 'late keyed']

const STARTS: [string, (t: TestContext) => Promise<(() => Promise<Heddle>) | null>][] = [
  [
    'in memory',
    async (t) => () => startHeddle(t, { domains: [DOMAINS], lanes: 2, env: { EVENT_BUS_DRIVER: 'in_process' } }),
  ],
  ['SQLite', async (t) => (await onSqlite(t, DOMAINS))!.start],
  ['PostgreSQL', async (t) => (await onPostgres(t, false, DOMAINS))?.start ?? null],
  [
    'Redis Streams',
    async (t) => {
      const redis = await redisServer(t, { own: true })
      const env = { ...redis?.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }
      return redis === null ? null : () => startHeddle(t, { domains: [DOMAINS], lanes: 1, env })
    },
  ],
]

for (const [where, startOf] of STARTS)
  test(`of three generations nothing begins any more, what runs is told, and what it still publishes is gone (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    const other = await grow(heddle, {
      name: 'other',
      event: 'tree.queues',
      stays: true,
      late: [{ name: 'child of other' }],
    })
    await haveBegun([heddle], ['other'])
    const root = await grow(heddle, TREE)
    await haveBegun([heddle], ['runs', 'tried', 'deep'])
    await until(() => heddle.logs.some(({ msg }) => String(msg).includes('tried fails')), 'the first attempt')
    await pause(300)
    assert.deepEqual(await cancel(heddle, root, { causedToo: false }), { waiting: 0, running: 0 })
    assert.deepEqual(await cancel(heddle, root), { waiting: 5, running: 2 })
    await until(() => heddle.logs.some(({ msg }) => msg === 'runs has ended'), 'its end')
    await pause(1500)
    assert.deepEqual(await cancel(heddle, other), { waiting: 0, running: 1 })
    const { begun, reasons, dead } = await seenBy(heddle)
    for (const name of NEVER) assert.equal(begun.includes(name), false, name)
    assert.deepEqual(reasons, {
      runs: 'cancelled',
      deep: 'cancelled',
      ...(reasons.other ? { other: 'cancelled' } : {}),
    })
    assert.deepEqual(dead, [])
    // Those who are not of it go on.
    await grow(heddle, { name: 'next', event: 'tree.queues' })
    await haveBegun([heddle], ['next'])
  })
