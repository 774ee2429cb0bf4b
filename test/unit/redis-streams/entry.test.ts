import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeEntry, encodeEntry, type StreamEvent } from '../../../src/runtime/redis-streams/entry.ts'
import type { EventFrame } from '../../../src/transport/frames/event-frame.ts'
import { eventOf } from '../events/fake-thread.ts'

const HOSTILE = [
  '',
  ' ',
  '"',
  '\\',
  '\\"',
  '\\\\"',
  '","replica":"forged',
  '"}',
  ']',
  '[',
  '],"replica":"forged"',
  '{}',
  'null',
  ',',
  '\n',
  '\r\n\t\b\f',
  '\u0001\u001f\u007f',
  '\u2028\u2029',
  'ü€😀',
  '\ud800',
  '\udc00 alone',
  '__proto__',
  'constructor',
  '$&$1',
  'x'.repeat(1024),
]

const FRAME = eventOf('evt_1', {
  parentId: 'evt_0',
  event: 'thing.happened',
  emitter: 'things.Make',
  payloadKeys: 'a\0b',
  timestampMs: 1_700_000_000_000,
  payload: '{"a":1,"b":2}',
})

function decoded(fields: string[]): StreamEvent {
  const event = decodeEntry('thing.happened', fields)
  assert.ok(typeof event !== 'string', `${event}: ${fields}`)
  return event
}

/** What comes back of a frame. */
function roundTrip(more: Partial<EventFrame>, replica = 'replica'): StreamEvent {
  const frame = { ...FRAME, ...more }
  const event = decoded(encodeEntry(frame, replica, null))
  assert.deepEqual(event.frame, { ...frame, ttlMs: 0 })
  assert.equal(event.replica, replica)
  assert.equal(event.onlyGroup, null)
  return event
}

test('an entry that is written is read again, whatever the names hold', () => {
  for (const text of HOSTILE) {
    roundTrip({ emitter: text })
    roundTrip({ requestId: text })
    roundTrip({ parentId: text })
    roundTrip({ payloadKeys: text })
    roundTrip({ payloadKeys: `a\0${text}\0b` })
    roundTrip({}, text)
    roundTrip({ emitter: text, requestId: text, parentId: text, payloadKeys: text }, text)
  }
})

test('a remembered text is not taken for another', () => {
  for (let n = 0; n < 2; n++) {
    roundTrip({ emitter: 'a', payloadKeys: 'a' }, 'a')
    roundTrip({ emitter: 'a b', payloadKeys: 'a\0b' }, 'a b')
    roundTrip({ emitter: '["a"]', payloadKeys: '["a"]' }, '["a"]')
  }
  // More than are remembered.
  for (let n = 0; n < 2500; n++) roundTrip({ emitter: `e${n}`, payloadKeys: `k${n}` })
})

test('nulls, no keys, and every envelope is JSON', () => {
  roundTrip({ parentId: null, requestId: null })
  roundTrip({ payloadKeys: '' })
  for (const text of HOSTILE) {
    const frame = { ...FRAME, emitter: text, requestId: text, parentId: text, payloadKeys: text }
    const [field, envelope] = encodeEntry({ ...frame, ttlMs: 5 }, text, null)
    assert.equal(field, 'e')
    const { emitter, request_id, parent_id, payload_keys, replica } = JSON.parse(envelope!)
    assert.deepEqual(
      { emitter, request_id, parent_id, payload_keys, replica },
      {
        emitter: text,
        request_id: text,
        parent_id: text,
        payload_keys: text === '' ? [] : [text],
        replica: text,
      },
    )
  }
})

test('the events above the parent are there, and what others have written there is checked', () => {
  const id = `evt_${'0'.repeat(32)}`
  roundTrip({ ancestors: id })
  roundTrip({ ancestors: `${id} ${id}`, ttlMs: 5, trace: '' })
  for (const text of HOSTILE) roundTrip({ ancestors: id, emitter: text, requestId: text })
  const [, envelope] = encodeEntry({ ...FRAME, ancestors: id }, 'r', null)
  for (const other of [...HOSTILE, `${id} `, id.repeat(2)])
    assert.equal(
      decoded(['e', envelope!.replace(`"${id}"`, () => JSON.stringify(other)), 'p', '{}']).frame.ancestors,
      '',
    )
})

test('a lifetime is counted from the publication', () => {
  assert.equal(roundTrip({}).expiresMs, 0)
  assert.equal(roundTrip({ ttlMs: 500 }).expiresMs, FRAME.timestampMs + 500)
})

test('the fields beside envelope and payload are read wherever they stand', () => {
  assert.equal(decoded(encodeEntry(FRAME, 'r', 'channel 7')).replyTo, 'channel 7')
  const own = encodeEntry(FRAME, 'r', null)
  const event = decoded(['x', 'y', ...own, 'o', 'a group', 'alone'])
  assert.equal(event.onlyGroup, 'a group')
  assert.equal(event.replyTo, null)
})

const USUAL = encodeEntry(FRAME, 'r', null)[1]!

test('an entry that is no event gives a reason', () => {
  const cases: [fields: string[], reason: RegExp][] = [
    [[], /no envelope/],
    [['e'], /no envelope/],
    [['p', '{}'], /no envelope/],
    [['e', USUAL], /no payload/],
    [['e', USUAL, 'p'], /no payload/],
    [['e', USUAL, 'p', ''], /payload is no JSON object/],
    [['e', USUAL, 'p', '[1]'], /payload is no JSON object/],
    [['e', '', 'p', '{}'], /envelope is no JSON/],
    [['e', 'foo', 'p', '{}'], /envelope is no JSON/],
    [['e', USUAL.slice(0, -1), 'p', '{}'], /envelope is no JSON/],
    [['e', `${USUAL}}`, 'p', '{}'], /envelope is no JSON/],
    [['e', USUAL.replace('["a","b"]', '[foo]'), 'p', '{}'], /envelope is no JSON/],
    [['e', USUAL.replace('["a","b"]', '["a",]'), 'p', '{}'], /envelope is no JSON/],
    [['e', 'null', 'p', '{}'], /envelope is no JSON object/],
    [['e', '7', 'p', '{}'], /envelope is no JSON object/],
    [['e', '"evt_1"', 'p', '{}'], /envelope is no JSON object/],
    [['e', '[]', 'p', '{}'], /no event id/],
    [['e', '{}', 'p', '{}'], /no event id/],
    [['e', USUAL.replace('evt_1', 'one'), 'p', '{}'], /no event id/],
    [['e', USUAL.replace('evt_1', `evt_${'1'.repeat(61)}`), 'p', '{}'], /no event id/],
    [['e', USUAL.replace('"evt_1"', '1'), 'p', '{}'], /no event id/],
    [['e', USUAL.replace('"things.Make"', 'null'), 'p', '{}'], /no emitter/],
    [['e', USUAL.replace('things.Make', 'x'.repeat(1025)), 'p', '{}'], /no emitter/],
    [['e', USUAL.replace('1700000000000', '"now"'), 'p', '{}'], /no timestamp/],
    [['e', USUAL.replace('1700000000000', '9'.repeat(400)), 'p', '{}'], /no timestamp/],
    [['e', USUAL.replace('1700000000000', '1e999'), 'p', '{}'], /no timestamp/],
  ]
  // Twice: what has been read once may be remembered.
  for (const [fields, reason] of [...cases, ...cases]) {
    const result = decodeEntry('thing.happened', fields)
    assert.match(typeof result === 'string' ? result : JSON.stringify(result), reason, JSON.stringify(fields))
    assert.equal(typeof result, 'string')
  }
})

test('odd values of optional fields are left out', () => {
  const envelope = {
    id: 'evt_1',
    emitter: 'x',
    timestamp: 1,
    parent_id: 7,
    request_id: [],
    payload_keys: {},
    replica: 1,
  }
  const { frame, replica, expiresMs } = decoded(['e', JSON.stringify({ ...envelope, expires: 'soon' }), 'p', '{}'])
  assert.equal(frame.parentId, null)
  assert.equal(frame.requestId, null)
  assert.equal(frame.payloadKeys, '')
  assert.equal(replica, '')
  assert.equal(expiresMs, 0)
})

test('no change of one character makes it throw', () => {
  for (let at = 0; at < USUAL.length; at++) {
    for (const character of ['"', '\\', '{', '}', '[', ']', ',', ':', '0', 'x', '\0', '']) {
      const changed = USUAL.slice(0, at) + character + USUAL.slice(at + 1)
      decodeEntry('thing.happened', ['e', changed, 'p', '{}'])
    }
  }
})

test('no list of keys makes it throw, and keys are a text', () => {
  for (const keys of [
    '[]',
    '[[1]]',
    '[null]',
    '[{}]',
    '[{"toString":1}]',
    '[1e999]',
    '["__proto__"]',
    '[ "a" , "b" ]',
    '[,]',
  ]) {
    const result = decodeEntry('thing.happened', ['e', USUAL.replace('["a","b"]', keys), 'p', '{}'])
    if (typeof result !== 'string') assert.equal(typeof result.frame.payloadKeys, 'string')
  }
})
