import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { post } from '../../support/started-service.ts'

const GREEDY = `export default class Greedy {
  constructor({ http, state }) {
    http.addEndpoint('/fill', 'POST', async ({ spaces }) => {
      for (let n = 0; ; n++) {
        try { await state.set('key' + n, 'x'.repeat(1000), spaces ? { namespace: 'space' + n } : {}) }
        catch ({ code, message }) { return { code, message } }
      }
    })
    http.addEndpoint('/more', 'POST', () => state.set('more', 'x'.repeat(5000)))
  } }`

test('a plugin that fills the state keeps nobody from logging in, and gets 503 itself', async (t) => {
  const domains = [await folderOf(t, { 'a/plugins/greedy.ts': GREEDY }), SHIPPED]
  const heddle = await startHeddle(t, { domains, lanes: 1, env: { STATE_MAX_BYTES: '1000000' } })
  const account = { name: 'Ada', email: 'ada@example.com', password: 'a long enough password' }
  assert.equal((await post(heddle, '/users', account)).success, true)
  for (const spaces of [true, false]) {
    const { code, message } = await post(heddle, '/fill', { spaces })
    assert.equal(code, 'STATE_QUOTA')
    assert.match(message, /^The plugin a\.Greedy has its share of the in-memory state, 500000 bytes; /)
    const more = await heddle.fetch('/more', { method: 'POST' })
    assert.deepEqual([more.status, more.headers.has('retry-after')], [503, true])
    const { success } = await post(heddle, '/login', { email: account.email, password: account.password })
    assert.equal(success, true)
  }
  assert.equal((await heddle.fetch('/system/health/ready')).status, 200)
})
