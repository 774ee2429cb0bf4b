import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contactOf } from '../../../domains/system/api-info.ts'

test('the contact is the author of package.json, and where its faults are told', () => {
  const ada = { name: 'Ada Lovelace', email: 'ada@example.com', url: 'https://example.com' }
  assert.deepEqual(contactOf({ author: 'Ada Lovelace <ada@example.com> (https://example.com)' }), ada)
  assert.deepEqual(contactOf({ author: ada }), ada)
  assert.deepEqual(contactOf({ author: 'Ada' }), { name: 'Ada' })
  assert.deepEqual(contactOf({ author: 'Ada (https://example.com)', bugs: 'https://example.com/bugs' }), {
    name: 'Ada',
    url: 'https://example.com/bugs',
  })
  assert.deepEqual(contactOf({ bugs: { email: 'bugs@example.com' } }), { email: 'bugs@example.com' })
  assert.equal(contactOf({}), undefined)
})
