import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boot } from '#heddle/testing'

const DESK = new URL('../fixtures/testing/desk', import.meta.url)
const TIMEOUT_MS = 20_000

test('a booted runtime is asked by requests and events, and ends with its test', async (t) => {
  const app = await boot(t, { domains: [DESK] })
  assert.deepEqual(Object.keys(app.plugins), ['desk.OpenTicket'])

  await t.test('a request is answered as a client sees it', async () => {
    const missing = await app.get('/tickets/1')
    assert.deepEqual([missing.status, missing.body], [404, { success: false, error: 'Not found' }])
    const response = await app.fetch('/tickets')
    assert.equal(response.status, 405)
    await response.body?.cancel()
  })

  await t.test('an event is awaited, and the tree says what caused it', async () => {
    const first = await app.post('/tickets', undefined, { headers: { 'x-request-id': 'first' } })
    const second = await app.post('/tickets', undefined, { headers: { 'x-request-id': 'second' } })
    assert.deepEqual([first.status, second.status], [200, 200])
    const assigned = await app.event('ticket.assigned', {
      where: ({ request_id }) => request_id === 'second',
      timeoutMs: TIMEOUT_MS,
    })
    assert.deepEqual([assigned.emitter, assigned.payload_keys], ['desk.OpenTicket', ['id']])
    await app.idle(TIMEOUT_MS)
    assert.deepEqual(
      app.tree().map(({ event, request_id, children }) => [event, request_id, children.map((child) => child.event)]),
      [
        ['ticket.opened', 'first', ['ticket.assigned']],
        ['ticket.opened', 'second', ['ticket.assigned']],
      ],
    )
    assert.equal(app.events('ticket.opened').length, 2)
  })

  await t.test('what the test publishes is held against contracts like anybody’s', async () => {
    await assert.rejects(app.publish('ticket.opened', { id: 7 }), /ticket\.opened.*id/s)
    assert.equal(app.events('ticket.opened').length, 2)
  })

  await t.test('idle waits for what is being handled, and says what is left when it is not', async () => {
    await app.publish('ticket.held', {})
    await assert.rejects(app.idle(20), /^Error: Not idle within 20 ms, deliveries to go: 1\.\nThese came:/)
    await app.post('/release')
    await app.publish('ticket.opened', { id: 'late' })
    await app.idle(TIMEOUT_MS)
    assert.equal(app.events('ticket.assigned').length, 3)
  })

  await t.test('an event that does not come is told with those that came, and with what failed', async () => {
    await app.publish('ticket.cursed', { id: 'x' })
    await app.idle(TIMEOUT_MS)
    const [letter] = await app.deadLetters()
    assert.deepEqual([letter!.event, letter!.attempts], ['ticket.cursed', 2])
    const error: Error = await app.event('ticket.closed', { timeoutMs: 1 }).catch((thrown) => thrown)
    assert.match(error.message, /^No event ticket\.closed came within 1 ms\.\nThese came:\n/)
    assert.match(
      error.message,
      /^ {2}ticket\.opened \{ id \} by desk\.OpenTicket\n {4}ticket\.assigned \{ id \} by desk/m,
    )
    assert.match(error.message, /^ {2}desk\.OpenTicket failed at ticket\.cursed \(2 attempts\): the desk is on fire$/m)
    assert.match(error.stack!, /testing-kit\.test\.ts/)
    await assert.rejects(
      app.event('ticket.opened', { where: () => false, timeoutMs: 1 }),
      /No event ticket\.opened that fits `where` came within 1 ms; 3 came that do not\./,
    )
  })

  await t.test('whoever still waits when it ends is told so', async () => {
    const waiting = assert.rejects(app.event('ticket.closed'), /the runtime is gone, it ended with 0/)
    await app.stop()
    await app.stop()
    await waiting
    await assert.rejects(app.publish('ticket.opened', {}), /does not answer/)
  })
})
