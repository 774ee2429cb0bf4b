import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const PLUGIN = `const letter = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } }
export default class Deliver {
  constructor({ http, db, event_bus }) { this.http = http; this.db = db; this.bus = event_bus }
  onBoot() {
    this.http.addEndpoint('/letters', 'POST', this.send, { body: letter })
    this.http.addEndpoint('/archive', 'POST', () => this.db.query('SELECT * FROM archive'))
    this.http.addEndpoint('/paper', 'POST', () => { throw 'out of paper' })
    this.http.addEndpoint('/weight', 'POST', () => ({ success: true, data: { grams: 10n } }))
    this.http.addEndpoint('/stamps', 'POST', this.list)
    this.http.addEndpoint('/mute', 'POST', () => { this.stamps = 1 })
    this.http.addEndpoint('/empty', 'POST', (_, context) => context.setStatus(204))
    this.http.addEndpoint('/values', 'POST', () => this.db.query('SELECT $1 AS a', 'x'))
    this.bus.subscribe('letter.sent', this.deliver, { retries: 2, backoffMs: 1 })
  }
  async send({ to }) {
    await this.bus.publish('letter.sent', { to })
    return { success: true }
  }
  async list() {
    const stamps = this.db.query('SELECT 1 AS one')
    return { success: true, data: stamps.map(({ one }) => one) }
  }
  async deliver(_, { attempt }) {
    if (attempt < 3) throw new Error('nobody opens the door')
  }
}
`

test('what goes wrong is told with its reason', async (t) => {
  const domains = await folderOf(t, { 'post/plugins/deliver.ts': PLUGIN })
  const heddle = await startHeddle(t, { domains: [domains], lanes: 1 })
  const post = (path: string, type: string, body: string) =>
    heddle.json(path, { method: 'POST', headers: { 'content-type': type }, body })

  await t.test('JSON that comes as a form, as curl -d sends it, is refused with what to add', async () => {
    const { status, body } = await post('/letters', 'application/x-www-form-urlencoded', '{"to": "Ada"}')
    assert.equal(status, 415)
    assert.match(body.error, /curl -d.*-H 'content-type: application\/json'/)
    assert.equal((await post('/letters', 'application/x-www-form-urlencoded', 'to=Ada')).status, 200)
  })

  await t.test(
    'attempts of a subscriber that are not the last are logged with their reason and their line',
    async () => {
      const attempts = await until(() => {
        const found = heddle.logs.filter(({ msg }) => msg.includes('and will get it again'))
        return found.length >= 2 ? found : null
      }, 'both attempts')
      assert.deepEqual(
        attempts.map(({ msg }) => msg),
        [1, 2].map(
          (n) =>
            `post.Deliver.deliver failed to handle letter.sent, attempt ${n} of 3, and will get it again: nobody opens the door`,
        ),
      )
      const [{ identity, stack }] = attempts as unknown as [Record<string, string>]
      assert.equal(identity, 'post.Deliver')
      assert.match(stack!, /deliver\.ts:24:/)
    },
  )

  await t.test('a table that no migration has made is told with what to do', async () => {
    assert.equal((await post('/archive', 'application/json', '{}')).status, 500)
    const record = await until(
      () => heddle.logs.find(({ msg }) => msg.startsWith('/archive failed')) as Record<string, string> | undefined,
      'the failure',
    )
    assert.match(record.fix!, /no applied migration makes the table archive: .*--boot-tool db/)
  })

  await t.test('a handler that returns nothing is warned of once, unless it has answered otherwise', async () => {
    for (const path of ['/mute', '/mute', '/empty']) await post(path, 'application/json', '{}').catch(() => {})
    assert.equal((await post('/values', 'application/json', '{}')).status, 500)
    const values = (await until(() => heddle.logs.find(({ msg }) => msg.startsWith('/values failed')), 'it'))!
    assert.match(values.msg, /The values must be an array: query\(statement, \[value\]\)$/)
    const warnings = heddle.logs.filter(({ msg }) => msg.includes('returns nothing')).map(({ msg }) => msg)
    assert.equal(warnings.length, 1, warnings.join('\n'))
    assert.match(
      warnings[0]!,
      /^POST \/mute is answered with null, for its handler at \S*deliver\.ts:10:\d+ returns nothing\. Fix: return an object/,
    )
  })

  await t.test(
    'what a handler does wrong is told with its line and its fix, also where no stack has them',
    async () => {
      const faults = {
        '/paper': { line: 7, fix: /^throw an Error, which has a line/ },
        '/weight': { line: 8, fix: undefined },
        '/stamps': { line: 21, fix: /^stamps is a promise: write stamps = await this\.db\.query\(…\)\.$/ },
      }
      for (const [path, { line, fix }] of Object.entries(faults)) {
        assert.equal((await post(path, 'application/json', '{}')).status, 500)
        const record = (await until(
          () => heddle.logs.find(({ msg }) => msg.startsWith(`${path} failed`)),
          path,
        )) as Record<string, string | undefined>
        assert.match(record.line!, new RegExp(`deliver\\.ts:${line}:\\d+$`))
        if (fix === undefined) assert.match(record.msg!, /a bigint as data\.grams, .*: write String\(value\)/)
        else assert.match(record.fix!, fix)
      }
    },
  )
})
