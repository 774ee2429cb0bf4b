import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plugin } from 'heddle/testing'
import {{imported}} from '{{pluginPath}}'

test('{{a}} is stored and announced, once per name', async (t) => {
  const app = await plugin(t, {{imported}}, { domain: {{domainChoice}} })
  const added = await app.post('{{path}}', { name: ' first ' })
  assert.equal(added.status, 201)
  assert.equal(added.body.data.name, 'first')

  const { data } = await app.event('{{event}}')
  assert.deepEqual(data, added.body.data)
  const row = await app.tools.db.queryOne('SELECT id, name FROM {{table}}')
  assert.deepEqual(row, added.body.data)

  const again = await app.post('{{path}}', { name: 'first' })
  assert.equal(again.status, 409)
  assert.equal(app.events('{{event}}').length, 1)
})

test('a request without a name is refused with the place of the fault', async (t) => {
  const app = await plugin(t, {{imported}}, { domain: {{domainChoice}} })
  const { status, body } = await app.post('{{path}}', {})
  assert.equal(status, 422)
  assert.equal(body.details[0].path, 'name')
})
