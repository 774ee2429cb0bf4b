import assert from 'node:assert/strict'
import { it } from 'node:test'
import { RequestStore, type StoredRequest } from '../../src/primary/dispatch/request-store.ts'
import type { Exchange } from '../../src/primary/http/exchange.ts'
import { KIND } from '../../src/transport/frames/frame-kinds.ts'
import { type RequestFrame, readRequest } from '../../src/transport/frames/request-frame.ts'
import { Inbox } from '../../src/transport/rings/inbox.ts'
import { laneOf } from '../support/fake-lane.ts'

const frameOf = (value: string, body: Uint8Array | null = null): RequestFrame => ({
  routeNumber: 7,
  methodNumber: 2,
  requestIdLength: 2,
  ipLength: 0,
  pathLength: 5,
  queryLength: 2,
  traceLength: 0,
  text: `id/patha=${value}`,
  body,
})

const FRAMES = [
  frameOf('x'),
  frameOf('ünï→codé'),
  frameOf('', Uint8Array.of(1, 2, 3)),
  frameOf('y'.repeat(15_000)),
  frameOf('', new Uint8Array(1_000_000).fill(9)),
  frameOf('', new Uint8Array(0)),
  frameOf('z'),
]

/** What a lane reads: bodies as numbers, to be compared. */
function plain({ isBeyondAscii: _, body, ...rest }: RequestFrame) {
  return { ...rest, body: body && [...body] }
}

const read = ({ chunk, at }: StoredRequest) => plain(readRequest(chunk, at))

it('gives each request back as it was, and says which are beyond ASCII', () => {
  const store = new RequestStore()
  const frames = FRAMES.map((frame) => ({ ...frame }))
  const stored = frames.map((frame) => store.add(frame))
  assert.deepEqual(stored.map(read), FRAMES.map(plain))
  assert.deepEqual(
    frames.flatMap(({ isBeyondAscii }, n) => (isBeyondAscii ? [n] : [])),
    [1],
  )
})

it('sends a lane what it would have been sent at once', (t) => {
  const store = new RequestStore()
  const lane = laneOf(t)
  const exchange = { route: null } as Exchange
  for (const frame of FRAMES) assert.notEqual(lane.sendStored(store.add({ ...frame }), exchange), -1)
  assert.equal(lane.requestsInFlight, FRAMES.length)
  const seen: unknown[] = []
  const { inbound, bulk } = lane.threadSide
  const onFrame = (kind: number, _: number, at: number) => seen.push([kind, plain(readRequest(inbox, at))])
  const inbox: Inbox = new Inbox(inbound, bulk, onFrame, { beginBatch() {}, endBatch() {} })
  inbox.drainAll()
  assert.deepEqual(
    seen,
    FRAMES.map((frame) => [KIND.REQUEST, plain(frame)]),
  )
})

it('uses the memory of requests that have left again, and never that of one that is there', () => {
  const store = new RequestStore()
  const chunks = new Set<unknown>()
  const kept = store.add(frameOf('kept'))
  const waiting: StoredRequest[] = []
  for (let n = 0; n < 20_000; n++) {
    const request = store.add(frameOf(`${n} ${'h'.repeat(600)}`))
    chunks.add(request.chunk)
    waiting.push(request)
    if (waiting.length <= 1000) continue
    const oldest = waiting.shift()!
    assert.match(read(oldest).text, new RegExp(`^id/patha=${n - 1000} `))
    store.remove(oldest)
  }
  assert.equal(read(kept).text, 'id/patha=kept')
  // A thousand take three chunks; one more is being filled, and one is kept by its only request.
  assert.ok(chunks.size <= 6, `${chunks.size} chunks`)
})
