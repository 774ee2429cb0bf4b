import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'

test('a hook of the application reads the address of a request for a file of a plugin on the primary', async (t) => {
  const domains = [fileURLToPath(new URL('../../fixtures/addressed', import.meta.url))]
  const heddle = await startHeddle(t, { domains, lanes: 1 })
  const answer = await heddle.fetch('/files/note.txt')
  assert.deepEqual([answer.status, answer.headers.get('x-address')], [200, '127.0.0.1'])
})
