import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodePayload } from '../../../src/runtime/events/publication.ts'

const keysOf = (payload: object): string => encodePayload('order.taken', payload).keys

test('keys are those of the JSON text, whatever the payload before had', () => {
  for (let round = 0; round < 2; round++) {
    assert.equal(keysOf({ id: 1, note: 'a' }), 'id\0note')
    assert.equal(keysOf({ id: 2, note: 'b' }), 'id\0note')
    assert.equal(keysOf({ id: 3, note: undefined }), 'id')
    assert.equal(keysOf({ id: 4, note: () => {} }), 'id')
    assert.equal(keysOf({ note: 'c', id: 5 }), 'note\0id')
    assert.equal(keysOf({ id: 6 }), 'id')
    assert.equal(keysOf({ id: 7, note: null, by: 'd' }), 'id\0note\0by')
    assert.equal(keysOf({}), '')
    assert.equal(keysOf({ id: 8, toJSON: () => ({ other: 1 }) }), 'other')
  }
})
