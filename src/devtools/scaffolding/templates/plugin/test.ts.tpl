import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plugin } from 'heddle/testing'
import {{imported}} from '{{plugin}}'

test('{{method}} {{path}}: {{purpose}}', async (t) => {
  const app = await plugin(t, {{imported}}, { domain: {{domain}} })
  const { status, body } = await app.request('{{method}}', '{{url}}'{{request}})
  assert.equal(status, {{code}})
  assert.deepEqual(body, { success: true, data: {{answer}} })
{{refusal}}})
