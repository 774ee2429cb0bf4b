import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DbError, HeddleError, isAway } from '../../../src/core/errors/catalogue.ts'
import { deliveryError } from '../../../src/runtime/events/event-server.ts'

test('a failed delivery says the causes of its error, each once', () => {
  const refused = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })
  assert.equal(deliveryError(new TypeError('fetch failed', { cause: refused })).message, 'fetch failed: ECONNREFUSED')
  const twice = new Error('not stored: disk full', { cause: new Error('disk full', { cause: new Error('quota') }) })
  assert.equal(deliveryError(twice).message, 'not stored: disk full: quota')
  assert.equal(deliveryError(new Error('alone', { cause: 'no error' })).message, 'alone')
})

test('causes that go round, or cannot be read, end the message', () => {
  const round = new Error('round')
  round.cause = new Error('and round', { cause: round })
  assert.equal(deliveryError(round).message, 'round: and round')
  const unreadable = new Error('a')
  Object.defineProperty(unreadable, 'cause', {
    get() {
      throw new Error('b')
    },
  })
  assert.equal(deliveryError(unreadable).message, 'a')
})

test('an error says that a tool is away where it or a cause of it does', () => {
  const away = new DbError('unavailable', 'connect ECONNREFUSED')
  assert.equal(isAway(away), true)
  assert.equal(
    isAway(new Error('not stored', { cause: new HeddleError('KV_UNAVAILABLE', 'gone', { cause: away }) })),
    true,
  )
  assert.equal(isAway(new HeddleError('EVENT_BUS_UNAVAILABLE')), true)
  for (const other of [
    new DbError('unique_violation', 'taken'),
    new HeddleError('EVENT_BUS_FULL'),
    new Error('x'),
    null,
    'away',
  ])
    assert.equal(isAway(other), false)
  const round = new Error('round')
  round.cause = round
  assert.equal(isAway(round), false)
})
