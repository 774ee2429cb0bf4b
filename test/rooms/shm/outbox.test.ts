import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { KIND, readText } from '../../../src/transport/frames/frames.ts'
import { createRing } from '../../../src/transport/memory/spsc-ring.ts'
import { BACKLOG_MAX_FRAMES } from '../../../src/transport/rings/backlog.ts'
import { Inbox } from '../../../src/transport/rings/inbox.ts'
import { Outbox } from '../../../src/transport/rings/outbox.ts'
import { until } from '../../support/until.ts'

const RING_BYTES = 1 << 18
const BODY = 'x'.repeat(1000)

/** An outbox, and the texts that its other side has read. */
function outboxOf(t: TestContext) {
  const memory = createRing(RING_BYTES)
  const doorbell = new MessageChannel()
  const bulk = new MessageChannel()
  const outbox = new Outbox(memory, doorbell.port1, bulk.port1)
  const read: [kind: number, id: number, text: string][] = []
  const inbox: Inbox = new Inbox(
    memory,
    bulk.port2,
    (kind, id, at, length) => read.push([kind, id, readText(inbox, at, length)]),
    { beginBatch() {}, endBatch() {} },
  )
  t.after(() => {
    outbox.close()
    doorbell.port1.close()
    bulk.port1.close()
  })
  /** Sends log records until the ring has no room for another. */
  const fill = (): void => {
    while (outbox.waitingBytes === 0) outbox.sendText(KIND.LOG, 0, BODY)
  }
  return { outbox, inbox, read, fill }
}

test('Outbox: begin() refuses a request while the ring is full, lets a call wait, and keeps an answer', (t) => {
  const { outbox, fill } = outboxOf(t)
  assert.notEqual(outbox.begin(KIND.REQUEST, 1, 1000), null)
  fill()
  assert.equal(outbox.begin(KIND.REQUEST, 1, 1000), null)
  assert.equal(outbox.begin(KIND.DELIVERY, 1, 1_000_000), null, 'a large body, too')
  for (let waiting = 1; waiting < BACKLOG_MAX_FRAMES; waiting++) assert.equal(outbox.sendText(KIND.CALL, 1, ''), true)
  assert.equal(outbox.sendText(KIND.CALL, 1, ''), false, 'the backlog is full')
  outbox.begin(KIND.CALL_RESULT, 1, 0).send(0)
  outbox.sendText(KIND.CANCEL, 1, '')
})

test('Outbox: frames that had to wait arrive in their order, behind those in the ring', async (t) => {
  const { outbox, inbox, read, fill } = outboxOf(t)
  fill()
  const sent = ['the first', 'x'.repeat(100_000), 'the last']
  for (const [n, text] of sent.entries()) outbox.sendText(KIND.CALL_RESULT, n, text)
  inbox.drainAll()
  await until(() => outbox.waitingBytes === 0, 'room')
  inbox.drainAll()
  assert.deepEqual(
    read.slice(-3),
    sent.map((text, n) => [KIND.CALL_RESULT, n, text]),
  )
})

test('Frame: send() throws when it was sent before, and sends nothing', (t) => {
  const { outbox, inbox, read } = outboxOf(t)
  for (const maxBytes of [8, 100_000]) {
    const frame = outbox.begin(KIND.RESPONSE, 1, maxBytes)
    frame.send(frame.bytes.utf8Write('once', frame.at))
    assert.throws(() => frame.send(4), { message: 'A frame is sent twice, or was not begun' })
  }
  inbox.drainAll()
  assert.deepEqual(
    read.map(([, , text]) => text),
    ['once', 'once'],
  )
})

test('Outbox: begin() starts over when the writer of the last frame has thrown', (t) => {
  const { outbox, inbox, read } = outboxOf(t)
  outbox.begin(KIND.RESPONSE, 1, 100_000)
  outbox.begin(KIND.RESPONSE, 2, 100)
  outbox.sendText(KIND.RESPONSE, 3, 'whole')
  inbox.drainAll()
  assert.deepEqual(read, [[KIND.RESPONSE, 3, 'whole']])
})

test('Outbox: a closed one takes no further frame, and an answer to nobody does no harm', (t) => {
  const { outbox, inbox, read } = outboxOf(t)
  outbox.close()
  assert.equal(outbox.begin(KIND.REQUEST, 1, 8), null)
  assert.equal(outbox.sendText(KIND.LOG, 1, 'log'), false)
  outbox.sendText(KIND.CALL_RESULT, 1, '{}')
  inbox.drainAll()
  assert.deepEqual([read, outbox.waitingBytes], [[], 0])
})
