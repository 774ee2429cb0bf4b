import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const START = `
import { setTimeout as sleep } from 'node:timers/promises'
const INSERT = 'INSERT INTO kept (id) VALUES ($1)'
`

const GUILTY = `${START}
export default class End {
  constructor({ db, http }) {
    const end = { loop: () => { for (;;); }, exit: () => process.exit(1) }
    const add = (id, after = () => {}) => db.transaction(async (tx) => {
      await tx.execute(INSERT, [id])
      after()
    })
    const ways = {
      outside: (how) => end[how](),
      first: (how) => db.transaction(async (tx) => {
        tx.execute(INSERT, ['first'])
        end[how]()
      }),
      statement: (how) => db.transaction(async (tx) => {
        await tx.execute(INSERT, ['statement'])
        end[how]()
      }),
      late: (how) => db.transaction(async (tx) => {
        await tx.execute(INSERT, ['late'])
        await sleep(20)
        end[how]()
      }),
      shared: async (how) => {
        for (let n = 0; n < 20; n++) await add('known' + n)
        void db.execute(INSERT, ['before'])
        void add('shared', end[how])
        await add('behind')
      },
    }
    http.addEndpoint('/end/:way/:how', 'POST', ({ way, how }) => ways[way](how))
  }
}`

const INNOCENT = `${START}
export default class Write {
  constructor({ db, http, logger }) {
    http.addEndpoint('/write-later', 'POST', async () => {
      await sleep(2500)
      await db.execute(INSERT, ['later'])
      return { success: true }
    })
    http.addEndpoint('/hold', 'POST', async () => {
      await db.transaction(async (tx) => {
        await tx.execute(INSERT, ['held'])
        logger.info('holds')
        await sleep(1500)
        await tx.execute(INSERT, ['held on'])
      })
      return { success: true }
    })
    http.addEndpoint('/write', 'POST', async () => {
      await db.execute(INSERT, ['other'])
      return { success: true }
    })
    http.addEndpoint('/rows', 'GET', async () => (await db.query('SELECT id FROM kept ORDER BY id')).map(({ id }) => id))
  }
}`

const FILES = {
  'a/plugins/end.ts': GUILTY,
  'a/plugins/write.ts': INNOCENT,
  'a/migrations/001_kept.sql': 'CREATE TABLE kept (id TEXT PRIMARY KEY);',
}

for (const [way, others] of Object.entries({ first: [], statement: [], late: [], shared: ['before', 'behind'] })) {
  for (const how of ['loop', 'exit']) {
    test(`what is stopped in a transaction holds up no other write: ${way}, ${how}`, async (t) => {
      const env = { LANE_STALL_MS: '1000' }
      const heddle = await startHeddle(t, { domains: [await folderOf(t, FILES)], lanes: 1, env })
      const later = heddle.post('/write-later', {})
      const guilty = heddle.post(`/end/${way}/${how}`, {})
      await until(() => heddle.logs.some(({ msg }) => / died: /.test(msg)), 'the lane leaves')
      await until(async () => (await heddle.json('/rows')).status === 200, 'another lane')
      const beganMs = performance.now()
      assert.equal((await heddle.post('/write', {})).status, 200)
      const tookMs = performance.now() - beganMs
      assert.ok(tookMs < 2000, `a write of another lane took ${tookMs} ms`)
      assert.equal((await later).status, 200)
      assert.ok((await guilty).status >= 500)
      const rows: string[] = (await heddle.json('/rows')).body
      const expected = ['later', 'other', ...others].sort()
      assert.deepEqual(
        rows.filter((id) => !id.startsWith('known')),
        expected,
      )
    })
  }
}

for (const how of ['loop', 'exit']) {
  test(`what is stopped beside a transaction leaves it alone: ${how}`, async (t) => {
    const env = { LANE_STALL_MS: '1000' }
    const heddle = await startHeddle(t, { domains: [await folderOf(t, FILES)], lanes: 1, env })
    const held = heddle.post('/hold', {})
    await until(() => heddle.logs.some(({ msg }) => msg === 'holds'), 'the transaction waits')
    const guilty = heddle.post(`/end/outside/${how}`, {})
    assert.equal((await held).status, 200)
    assert.ok((await guilty).status >= 500)
    await until(async () => (await heddle.json('/rows')).status === 200, 'another lane')
    assert.deepEqual((await heddle.json('/rows')).body, ['held', 'held on'])
  })
}
