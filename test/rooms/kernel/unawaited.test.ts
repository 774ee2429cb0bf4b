import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { describeOnDatabases } from '../../support/databases.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const MIGRATION = 'CREATE TABLE crates (id TEXT PRIMARY KEY);'
/** The line of each call is told by its comment. */
const PLUGIN = `import { Plugin } from '#heddle'

export default class StoreCrate extends Plugin {
  #db
  #bus
  constructor({ http, db, event_bus }) {
    super()
    this.#db = db
    this.#bus = event_bus
    http.addEndpoint('/lost', 'POST', this.lose)
    http.addEndpoint('/failed', 'POST', this.fail)
    http.addEndpoint('/tx', 'POST', this.failInTransaction)
    http.addEndpoint('/kept', 'POST', this.keep)
    http.addEndpoint('/own', 'POST', () => void Promise.reject(new Error('an error of its own')))
    http.addEndpoint('/hello', 'GET', () => ({ success: true }))
  }
  async lose() {
    await this.#db.query('SELECT 1 AS one')
    this.#db.execute('INSERT INTO crates (id) VALUES ($1)', ['the same crate']) // lost
    this.#bus.publish('crate stored', [1]) // published
    return { success: true }
  }
  async fail() {
    await this.#insert("it's a secret")
    return { success: true }
  }
  async #insert(id) {
    await this.#db.execute("INSERT INTO crates (id) SELECT $1 WHERE 'a secret' <> 'b'", [id]) // failed
  }
  async failInTransaction() {
    await this.#db.transaction(async (tx) => {
      await tx.execute('INSERT INTO crates (id) VALUES ($1)', ['the same crate']) // transaction
    })
  }
  async keep() {
    await this.#db.execute('INSERT INTO crates (id) VALUES ($1)', ['the same crate']).catch(() => {})
    const [first] = await Promise.allSettled([this.#db.execute('INSERT INTO crates (id) VALUES ($1)', ['the same crate'])])
    return { success: true, data: first.status }
  }
}
`
const lineOf = (comment: string): number => PLUGIN.split('\n').findIndex((line) => line.endsWith(`// ${comment}`)) + 1

describeOnDatabases('failed tool calls', (database) => {
  test('in the log', async (t) => {
    const domains = await folderOf(t, {
      'yard/migrations/001_crates.sql': MIGRATION,
      'yard/plugins/store-crate.ts': PLUGIN,
    })
    const heddle = await startHeddle(t, { domains: [domains], lanes: 1, env: await database.env(t) })
    const post = (path: string) => heddle.json(path, { method: 'POST' })
    const place = (comment: string): string => `${join(domains, 'yard/plugins/store-crate.ts')}:${lineOf(comment)}:`
    const logged = (text: string) =>
      until(() => heddle.logs.find(({ msg }) => msg.includes(text)) as Record<string, string> | undefined, text)

    await t.test(
      'a call that is awaited and rejects shows the line of the plugin first, and the statement',
      async () => {
        assert.equal((await post('/failed')).status, 200)
        assert.equal((await post('/failed')).status, 500)
        const { stack } = await logged('/failed failed')
        const [head, statement, frame] = stack!.split('\n')
        assert.match(head!, /unique/i)
        assert.equal(statement, '  statement: INSERT INTO crates (id) SELECT $1 WHERE ? <> ?')
        assert.ok(frame!.includes(place('failed')), stack)
        assert.ok(stack!.includes('fail'), stack)
        assert.ok(!stack!.includes('a secret'), 'no values')
      },
    )

    await t.test('so does one in a transaction', async () => {
      await post('/tx')
      assert.equal((await post('/tx')).status, 500)
      const { stack } = await logged('/tx failed')
      assert.ok(stack!.split('\n')[2]!.includes(place('transaction')), stack)
    })

    await t.test('a call that rejects while nobody waits is logged with its plugin and its line', async () => {
      assert.equal((await post('/lost')).status, 200)
      const record = await logged('db.execute failed, and nobody waits for it')
      assert.equal(record.identity, 'yard.StoreCrate')
      assert.ok(record.line!.startsWith(place('lost')), record.line)
      assert.equal(record.handler, 'POST /lost')
      assert.match(record.request_id!, /./)
      assert.match(record.msg!, /unique.*Fix: await the call/is)
      assert.ok(record.stack!.includes('statement: INSERT INTO crates (id) VALUES ($1)'), record.stack)
      const published = await logged('event_bus.publish failed, and nobody waits for it')
      assert.ok(published.line!.startsWith(place('published')), published.line)
    })

    await t.test('a rejection that is handled is not logged, and the lane lives through all of it', async () => {
      const before = heddle.logs.length
      assert.deepEqual((await post('/kept')).body, { success: true, data: 'rejected' })
      assert.equal((await heddle.json('/hello')).status, 200)
      const after = heddle.logs.slice(before).map(({ msg }) => msg)
      assert.deepEqual(
        after.filter((msg) => msg.includes('nobody waits') || msg.includes('died')),
        [],
      )
    })

    await t.test('any other rejection that nobody handles ends the lane, as before', async () => {
      await post('/own')
      const record = await logged('an error of its own')
      assert.doesNotMatch(record.msg!, /nobody waits/)
    })
  })
})
