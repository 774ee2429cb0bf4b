import type { HttpResponse } from 'uWebSockets.js'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { steadyMs } from '../../../src/core/schedule/clock.ts'
import type { Exchange } from '../../../src/primary/http/exchange.ts'
import { MEMORY_SHARE_OF_ADDRESS, type Owner, SHARE } from '../../../src/primary/http/places.ts'
import { PendingBodies } from '../../../src/primary/http/request-body.ts'
import {
  LongAnswer,
  longAnswers,
  SSE_MAX_TOTAL_BYTES,
  SSE_MAX_WAITING_BYTES,
  SseClient,
} from '../../../src/primary/http/sent-body.ts'

const MIB = 1 << 20

/** The library's end of a stream whose client reads only when it is told to. */
function fakeStream() {
  let wake = (): boolean => true
  const stream = { reads: false, isClosed: false, bytes: 0, last: '', resume: () => wake() }
  const res = {
    onWritable: (callback: () => boolean) => {
      wake = callback
    },
    cork: (write: () => void) => write(),
    write: (piece: Uint8Array) => {
      stream.bytes += piece.byteLength
      stream.last = piece.byteLength < 100 ? Buffer.from(piece).toString() : ''
      return stream.reads
    },
    end: () => {},
    close: () => {
      stream.isClosed = true
    },
  }
  return { stream, res: res as unknown as HttpResponse }
}

describe('streams', () => {
  it('hold little for each client that does not read, and no more than a bound for all of them together', () => {
    const frame = Buffer.alloc(SSE_MAX_WAITING_BYTES - 100_000)
    let gone = 0
    const clients = Array.from({ length: 400 }, () => {
      const { stream, res } = fakeStream()
      return { stream, client: new SseClient(res, () => gone++) }
    })
    const reading = fakeStream()
    reading.stream.reads = true
    let isReaderGone = false
    const reader = new SseClient(reading.res, () => {
      isReaderGone = true
    })
    for (const { client } of [...clients, { client: reader }]) {
      client.send(Buffer.from('first'))
      client.send(frame)
    }
    const open = clients.filter(({ stream }) => !stream.isClosed).length
    assert.equal(gone, 400 - open)
    assert.ok(open * frame.byteLength <= SSE_MAX_TOTAL_BYTES && open > 200, `${open} are open`)
    assert.equal(reading.stream.bytes, frame.byteLength + 5)
    assert.equal(isReaderGone, false)
    for (const { client } of clients) client.forget()
    reader.end()
    // What was held is free again: a client of its own may have all of it.
    const { stream, res } = fakeStream()
    const last = new SseClient(res, () => {})
    last.send(Buffer.alloc(200 * MIB))
    assert.equal(stream.isClosed, false)
    last.forget()
  })

  it('count what holding a frame costs: a hundred thousand tiny ones are more than their bytes', () => {
    const { stream, res } = fakeStream()
    let gone = 0
    const client = new SseClient(res, () => gone++)
    let sent = 0
    while (!stream.isClosed && sent < 100_000) {
      client.send(Buffer.from('x'))
      sent++
    }
    assert.ok(stream.isClosed, `${sent} frames wait`)
    assert.equal(gone, 1)
  })

  it('get a comment line after 15 seconds without a frame, and not before', () => {
    const { stream, res } = fakeStream()
    stream.reads = true
    const beforeMs = steadyMs()
    const client = new SseClient(res, () => {})
    client.check(beforeMs + 14_999)
    assert.equal(stream.last, '')
    client.check(steadyMs() + 15_000)
    assert.equal(stream.last, ': keep-alive\n\n')
    stream.last = ''
    client.check(beforeMs + 14_999)
    assert.equal(stream.last, '')
    client.end()
  })
})

/** A long answer whose client takes so many bytes. */
function fakeAnswer(bytes: number) {
  let wake: (offset: number) => boolean = () => true
  const answer = { isClosed: false, offset: 0, roomBytes: 0 }
  const res = {
    onWritable: (callback: typeof wake) => {
      wake = callback
    },
    cork: (write: () => void) => write(),
    tryEnd: (piece: Uint8Array, totalBytes: number) => {
      const taken = Math.min(piece.byteLength, answer.roomBytes)
      answer.roomBytes -= taken
      answer.offset += taken
      return [taken === piece.byteLength, answer.offset === totalBytes]
    },
    getWriteOffset: () => answer.offset,
    close: () => {
      answer.isClosed = true
    },
  }
  const body = Buffer.alloc(bytes, 'heddle')
  const sent = new LongAnswer(res as unknown as HttpResponse, bytes, false, 'GET /list')
  sent.begin(() => {}, body)
  // It was lent.
  body.fill(0)
  return {
    answer,
    read: (count: number) => {
      answer.roomBytes = count
      wake(answer.offset)
    },
  }
}

describe('long answers', () => {
  it('hold no more than a bound together: the client that has read nothing for the longest is cut off', (t) => {
    const { maxBytes, onCutOff } = longAnswers
    t.after(() => Object.assign(longAnswers, { maxBytes, onCutOff }))
    const cutOff: string[] = []
    Object.assign(longAnswers, { maxBytes: 3 * MIB, onCutOff: ({ route }: LongAnswer) => cutOff.push(route) })
    const fakes = Array.from({ length: 3 }, () => fakeAnswer(MIB))
    const areClosed = () => fakes.map(({ answer }) => answer.isClosed)
    fakes[0]!.read(1)
    fakes.push(fakeAnswer(MIB))
    assert.deepEqual(areClosed(), [false, true, false, false])
    // One of any length is begun, alone then.
    fakes.push(fakeAnswer(4 * MIB))
    assert.deepEqual(areClosed(), [true, true, true, true, false])
    assert.deepEqual(cutOff, Array(4).fill('GET /list'))
    fakes[4]!.read(5 * MIB)
    assert.equal(fakes[4]!.answer.offset, 4 * MIB)
    assert.equal(longAnswers.open, 0)
    // What was held is free again.
    const last = Array.from({ length: 3 }, () => fakeAnswer(MIB))
    assert.ok(last.every(({ answer }) => !answer.isClosed))
    for (const { read } of last) read(MIB)
  })
})

let owners = 0
/** Another client, at another route. */
const newOwner = () => ({ network: `192.0.2.${++owners}`, route: `POST /${owners}` })

/** A request whose body comes as the test wants. */
function fakeUpload(
  bodies: PendingBodies,
  limitBytes: number,
  expectedBytes: number | null = null,
  owner = newOwner(),
) {
  let onData: (chunk: ArrayBuffer, isLast: boolean) => void = () => {}
  const upload = { failure: '', body: null as Uint8Array | null, isClosed: false, abort: () => {} }
  const res = {
    onData: (callback: typeof onData) => {
      onData = callback
    },
  } as unknown as HttpResponse
  const exchange = {
    get isDone() {
      return upload.failure !== '' || upload.isClosed
    },
    isLast: false,
    owner,
    mayUpload: () => true,
    uploadOver: () => {},
    onAbort: (callback: () => void) => {
      upload.abort = callback
    },
    fail: (code: string) => {
      upload.failure = code
    },
    close: () => {
      upload.isClosed = true
    },
  } as unknown as Exchange
  bodies.collect(res, exchange, expectedBytes, limitBytes, false, (body) => {
    upload.body = Buffer.from(body)
  })
  const send = (text: string, isLast = false): void => {
    const bytes = new TextEncoder().encode(text)
    onData(bytes.buffer as ArrayBuffer, isLast)
    // The library takes its memory back.
    bytes.fill(0)
  }
  return { upload, send }
}

describe('bodies', () => {
  it('that come byte by byte are held in one piece', () => {
    const bodies = new PendingBodies()
    const { upload, send } = fakeUpload(bodies, MIB)
    const text = 'abcdefghij'.repeat(5_000)
    for (const char of text) send(char)
    assert.ok(bodies.memory.held < 2 * text.length, `${bodies.memory.held} bytes are held`)
    send('', true)
    assert.equal(Buffer.from(upload.body!).toString(), text)
    assert.equal(bodies.memory.held, 0)
    assert.equal(bodies.open.size, 0)
  })

  it('get no memory for a length that is only announced', () => {
    const bodies = new PendingBodies()
    const { send } = fakeUpload(bodies, MIB, MIB)
    send('x')
    assert.ok(bodies.memory.held <= 4_096, `${bodies.memory.held} bytes are held`)
  })

  it('are refused when all of them together hold too much, and taken again when some have left', () => {
    const bodies = new PendingBodies(100_000)
    const uploads = Array.from({ length: 10 }, () => fakeUpload(bodies, MIB))
    for (const { send } of uploads) for (let n = 0; n < 3; n++) send('x'.repeat(8_000))
    const refused = uploads.filter(({ upload }) => upload.failure === 'HTTP_OVERLOADED')
    assert.ok(refused.length > 0 && refused.length < 10, `${refused.length} were refused`)
    assert.ok(bodies.memory.held <= 100_000)
    for (const { upload } of uploads) upload.abort()
    assert.equal(bodies.memory.held, 0)
    const { upload, send } = fakeUpload(bodies, MIB)
    send('a')
    send('b', true)
    assert.equal(Buffer.from(upload.body!).toString(), 'ab')
  })

  for (const bound of ['network', 'route'] as const)
    it(`of one ${bound} leave room for others, and it is free again when they are over`, () => {
      const bodies = new PendingBodies(100_000)
      const most = (bound === 'route' ? SHARE : MEMORY_SHARE_OF_ADDRESS) * 100_000
      const of = (owner: Owner) => fakeUpload(bodies, MIB, null, owner)
      const crowd = Array.from({ length: 20 }, () => of({ ...newOwner(), [bound]: 'crowd' }))
      for (const { send } of crowd) for (let n = 0; n < 2; n++) send('x'.repeat(4_000))
      assert.ok(crowd.some(({ upload }) => upload.failure === 'HTTP_OVERLOADED'))
      assert.ok(bodies.memory.held <= most && bodies.memory.held > most / 2, `${bodies.memory.held} bytes are held`)
      const other = of(newOwner())
      for (let n = 0; n < 2; n++) other.send('x'.repeat(4_000))
      assert.equal(other.upload.failure, '')
      for (const { upload } of [...crowd, other]) upload.abort()
      assert.equal(bodies.memory.held, 0)
      const again = of({ ...newOwner(), [bound]: 'crowd' })
      for (let n = 0; n < 5; n++) again.send('x'.repeat(4_000))
      assert.equal(again.upload.failure, '')
    })

  it('may be as long as the limit, and not a byte longer', () => {
    const bodies = new PendingBodies()
    const fits = fakeUpload(bodies, 10_000)
    for (let n = 0; n < 10; n++) fits.send('x'.repeat(1_000), n === 9)
    assert.equal(fits.upload.body!.byteLength, 10_000)
    const over = fakeUpload(bodies, 10_000)
    for (let n = 0; n < 11; n++) over.send('x'.repeat(1_000), n === 10)
    assert.equal(over.upload.failure, 'HTTP_BODY_TOO_LARGE')
    assert.equal(over.upload.body, null)
    assert.equal(bodies.memory.held, 0)
  })
})
