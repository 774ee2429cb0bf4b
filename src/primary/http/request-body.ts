// Bodies that come: collected, or handed on while they come.
import type { ErrorCode } from '../../core/errors/catalogue.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { PIECE_BYTES } from '../../runtime/endpoint/stream/body-source.ts'
import type { ClientResponse } from './library.ts'
import { type Owner, SharedBytes } from './places.ts'

/** The library closes a connection on which nothing happens for 8 s: it is told this often that a body is under way, milliseconds. */
const TOUCH_MS = 1_000

/**
 * Bytes of one body that have come and that its handler has not asked for, at most. A client over a network leaves some reads of its socket
 * here. uWebSockets.js reads on at once, paused or not, for as long as each read fills its 512 KiB: a sender on the same machine, as fast as
 * this process copies, is stopped by this alone. Source: `us_internal_dispatch_ready_poll` of uSockets.
 */
export const STREAMED_BODY_MAX_HELD_BYTES = 128 << 20

/** The request whose body comes. */
interface BodyRequest {
  readonly route: { readonly timeoutMs: number } | null
  readonly isDone: boolean
  /** Its answer has begun. */
  readonly isStream: boolean
  isLast: boolean
  deadlineMs: number
  readonly owner: Owner
  onAbort(callback: () => void): void
  /** Takes a place among the uploads. False when there is none: the request is answered then. */
  mayUpload(kind: 'upload' | 'slow body', close: boolean): boolean
  uploadOver(): void
  look(nowMs: number): void
  fail(code: ErrorCode, message?: string, close?: boolean): void
  close(): void
}

/**
 * Runs when the library is through with the bytes that it has read. What it takes for a further request behind a chunked body, a trailer for example,
 * has ended the connection by then, so that no handler runs for a request whose client gets another answer.
 */
export function whenRead(request: { readonly isDone: boolean }, work: () => void): void {
  setImmediate(() => {
    if (!request.isDone) work()
  })
}

/** Takes a body for a handler. */
export interface BodySink {
  /** @param piece lent for the call */
  bodyPiece(requestId: number, piece: Uint8Array): void
  /** @param fault why it is not complete; empty when it is */
  bodyEnded(requestId: number, fault: ErrorCode | ''): void
}

/**
 * The body of one request, handed over while it comes. The handler says how much it can take; the client is read as far as that, and what one
 * read of its socket has brought beyond it is held here.
 */
export class StreamedBody {
  readonly #res: ClientResponse
  readonly #exchange: BodyRequest
  readonly #expectedBytes: number | null
  readonly #limitBytes: number
  readonly #isStrict: boolean
  readonly #bodies: StreamedBodies
  #pieces: Buffer[] = []
  #heldBytes = 0
  #receivedBytes = 0
  /** Bytes that the handler can take. */
  #wantedBytes = 0
  #sink: BodySink | null = null
  /** Of the bytes that are held. */
  #owner: Owner | null = null
  #requestId = 0
  #state: 'coming' | 'complete' | 'broken' | 'unwanted' = 'coming'
  #fault: ErrorCode | '' = ''
  #isTold = false
  #isPaused = false
  #isGone = false
  /** How long the client may still send nothing, milliseconds, as of `#countedMs`. */
  #patienceMs = BODY_TIMEOUT_MS
  #countedMs = steadyMs()
  #touchedMs = this.#countedMs

  /**
   * @param expectedBytes the content length, or null for a chunked body
   * @param isStrict the end of a chunked body is certain
   * @param bodies of which it is one
   */
  constructor(
    res: ClientResponse,
    exchange: BodyRequest,
    expectedBytes: number | null,
    limitBytes: number,
    isStrict: boolean,
    bodies: StreamedBodies,
  ) {
    this.#res = res
    this.#exchange = exchange
    this.#expectedBytes = expectedBytes
    this.#limitBytes = limitBytes
    this.#isStrict = isStrict
    this.#bodies = bodies
    bodies.open.add(this)
    exchange.onAbort(() => {
      this.#isGone = true
      this.#giveUp()
    })
    res.onData((chunk, isLast) => this.#received(new Uint8Array(chunk), isLast))
    this.#pause()
  }

  /** The library reads chunks so loosely that the end of the body is not certain: the bytes behind it are not to be trusted. */
  get isEndUncertain(): boolean {
    return this.#expectedBytes === null && !this.#isStrict
  }

  get isComing(): boolean {
    return this.#state === 'coming'
  }

  /** The handler can take further bytes. */
  want(bytes: number, requestId: number, sink: BodySink): void {
    if (this.#isTold || this.#state === 'unwanted') return
    this.#sink = sink
    this.#requestId = requestId
    this.#wantedBytes += bytes
    this.#handOver()
    this.#restartDeadline()
  }

  /**
   * The request is answered: what is still to come is received and dropped.
   * @returns true when that is too much or would take too long, so that the connection is to be closed
   */
  abandon(): boolean {
    if (this.#state === 'complete' || this.#state === 'unwanted') return false
    this.#giveUp()
    const restBytes = this.#expectedBytes === null ? 0 : this.#expectedBytes - this.#receivedBytes
    const isSlow = this.#fault === 'HTTP_REQUEST_TIMEOUT' || this.#fault === 'HTTP_OVERLOADED'
    if (isSlow || restBytes > DROPPED_BODY_MAX_BYTES) return true
    if (!this.#isGone) this.#res.resume()
    return false
  }

  /** Ends the wait for a client that is too slow. Called regularly. */
  check(nowMs: number): void {
    if (this.#isGone || this.#state === 'complete') return
    if (nowMs - this.#touchedMs >= TOUCH_MS) {
      this.#touchedMs = nowMs
      if (this.#isPaused) this.#res.pause()
      else this.#res.resume()
    }
    if (!this.#isPaused && nowMs - this.#countedMs > this.#patienceMs) this.#break('HTTP_REQUEST_TIMEOUT')
  }

  #received(chunk: Uint8Array, isLast: boolean): void {
    if (this.#state !== 'coming') return
    this.#receivedBytes += chunk.byteLength
    this.#countPatience(chunk.byteLength)
    if (this.#receivedBytes > this.#limitBytes) return this.#break('HTTP_BODY_TOO_LARGE')
    if (isLast && this.#expectedBytes !== null && this.#receivedBytes !== this.#expectedBytes)
      return void this.#res.close()
    const takenBytes = this.#heldBytes > 0 ? 0 : Math.min(this.#wantedBytes, chunk.byteLength)
    for (let at = 0; at < takenBytes; at += PIECE_BYTES)
      this.#send(chunk.subarray(at, Math.min(at + PIECE_BYTES, takenBytes)))
    if (takenBytes < chunk.byteLength && !this.#hold(chunk.subarray(takenBytes))) return this.#break('HTTP_OVERLOADED')
    if (isLast && this.isEndUncertain) {
      // What comes behind it stays unread.
      this.#pause()
      whenRead(this.#exchange, () => this.#complete())
    } else if (isLast) this.#complete()
    else {
      // A handler in the listener's own thread asks at once for more.
      this.#handOver()
      if (this.#wantedBytes === 0) this.#pause()
    }
    this.#restartDeadline()
  }

  #complete(): void {
    if (this.#state !== 'coming') return
    this.#state = 'complete'
    if (this.isEndUncertain) this.#exchange.isLast = true
    this.#bodies.open.delete(this)
    this.#exchange.uploadOver()
    // For the next request of the connection.
    if (!this.isEndUncertain) this.#resume()
    this.#handOver()
  }

  /** What is held for the handler is dropped: it learns at once that the rest does not come. */
  #break(fault: ErrorCode): void {
    this.#state = 'broken'
    this.#fault = fault
    this.#exchange.uploadOver()
    this.#drop()
    this.#pause()
    this.#handOver()
    this.#restartDeadline()
  }

  #giveUp(): void {
    this.#bodies.open.delete(this)
    this.#state = 'unwanted'
    this.#exchange.uploadOver()
    this.#drop()
  }

  /** Sends what the handler can take, and the end. */
  #handOver(): void {
    while (this.#heldBytes > 0 && this.#wantedBytes > 0) {
      const piece = this.#pieces[0]!
      const part = piece.subarray(0, Math.min(this.#wantedBytes, PIECE_BYTES))
      if (part.byteLength === piece.byteLength) this.#pieces.shift()
      else this.#pieces[0] = piece.subarray(part.byteLength)
      this.#free(part.byteLength)
      this.#send(part)
    }
    if (this.#state === 'coming') {
      if (this.#wantedBytes > 0) this.#resume()
    } else if (this.#heldBytes === 0 && this.#sink !== null && !this.#isTold) {
      this.#isTold = true
      this.#sink.bodyEnded(this.#requestId, this.#fault)
    }
  }

  #send(piece: Uint8Array): void {
    this.#wantedBytes -= piece.byteLength
    this.#sink!.bodyPiece(this.#requestId, piece)
  }

  /** A copy: the library reuses the memory. False when there is no room for it. */
  #hold(bytes: Uint8Array): boolean {
    if (this.#heldBytes + bytes.byteLength > STREAMED_BODY_MAX_HELD_BYTES) return false
    this.#owner ??= this.#exchange.owner
    if (!this.#bodies.memory.tryAdd(this.#owner, bytes.byteLength)) return false
    this.#heldBytes += bytes.byteLength
    this.#pieces.push(Buffer.from(bytes))
    return true
  }

  #free(bytes: number): void {
    if (bytes === 0) return
    this.#heldBytes -= bytes
    this.#bodies.memory.add(this.#owner!, -bytes)
  }

  #drop(): void {
    this.#free(this.#heldBytes)
    this.#pieces = []
  }

  /** Always: an answer that waits for the client makes the library read again. */
  #pause(): void {
    if (this.#isGone) return
    this.#isPaused = true
    this.#res.pause()
  }

  #resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#countedMs = steadyMs()
    this.#res.resume()
  }

  #countPatience(bytes: number): void {
    const nowMs = steadyMs()
    const spentMs = this.#isPaused ? 0 : nowMs - this.#countedMs
    const earnedMs = (bytes / BODY_MIN_BYTES_PER_SEC) * 1000
    this.#patienceMs = Math.min(BODY_TIMEOUT_MS, this.#patienceMs - spentMs + earnedMs)
    this.#countedMs = nowMs
  }

  /**
   * The handler's time begins again with each of its steps, and does not run while the client is to send: there is a time for that, too.
   * An answer that has begun has no deadline.
   */
  #restartDeadline(): void {
    const exchange = this.#exchange
    const { timeoutMs } = exchange.route!
    if (timeoutMs === 0 || exchange.isStream || exchange.isDone) return
    const isClientsTurn = this.#state === 'coming' && this.#wantedBytes > 0
    exchange.deadlineMs = isClientsTurn ? 0 : steadyMs() + timeoutMs
  }
}

/** Memory of all streamed bodies that no handler has asked for yet, at most. A body that needs more is answered 503. */
const STREAMED_BODIES_MAX_BYTES = 256 << 20

/** The bodies that are handed over while they come. The listener's sweep ends those that are too slow. */
export class StreamedBodies {
  readonly memory: SharedBytes
  /** Those that are neither complete nor unwanted. */
  readonly open = new Set<StreamedBody>()

  constructor(maxBytes = STREAMED_BODIES_MAX_BYTES) {
    this.memory = new SharedBytes('Streamed bodies', maxBytes)
  }

  check(nowMs: number): void {
    for (const body of this.open) body.check(nowMs)
  }
}

/**
 * A body has this long, and a second more for each 16 KiB that have come, milliseconds. Less than the 8 s after which the library may
 * close a slow connection by itself, without an answer.
 */
export const BODY_TIMEOUT_MS = 7_000
/** A body that has been coming for so long holds a place of an upload: others come with their heads, or soon after, milliseconds. */
const SLOW_BODY_MS = 1_000
const BODY_MIN_BYTES_PER_SEC = 16_384
/**
 * A refused body of at most this length is received and dropped by the library: a client whose connection is closed while it sends gets
 * a reset, and never sees the 413. A chunked body is dropped to its end; the library closes the connection when the body is too slow.
 */
export const DROPPED_BODY_MAX_BYTES = 64 << 20

/** Memory of all bodies that are being received, at most. A body that needs more is answered 503. */
const BODIES_MAX_BYTES = 256 << 20
/** Memory for the first bytes of a body. A smaller body comes in one piece. */
const BODY_FIRST_BYTES = 4_096

const NO_BYTES = Buffer.alloc(0)

/** Bodies that are being received. The listener's sweep ends those that are too slow. */
export class PendingBodies {
  readonly memory: SharedBytes
  readonly open = new Set<PendingBody>()

  constructor(maxBytes = BODIES_MAX_BYTES) {
    this.memory = new SharedBytes('Bodies', maxBytes)
  }

  /**
   * Collects a body of at most `limitBytes` and hands it over; answers 413, 408 or 503 itself.
   * @param expectedBytes the content length, or null for a chunked body
   * @param isEndUncertain what comes behind the body stays unread
   * @param done must not throw: that would end the process
   */
  collect(
    res: ClientResponse,
    exchange: BodyRequest,
    expectedBytes: number | null,
    limitBytes: number,
    isEndUncertain: boolean,
    done: (body: Uint8Array) => void,
  ): void {
    // From the head on: the library's time runs from there, too.
    const pending: PendingBody = {
      exchange,
      owner: null,
      bytes: NO_BYTES,
      length: 0,
      startedMs: steadyMs(),
      isSlow: false,
    }
    this.open.add(pending)
    exchange.onAbort(() => this.#drop(pending))
    res.onData((chunk, isLast) => {
      if (exchange.isDone) return
      if (isLast && isEndUncertain && pending.length + chunk.byteLength === 0) {
        res.pause()
        return whenRead(exchange, () => {
          this.#drop(pending)
          done(NO_BYTES)
        })
      }
      if (isLast && pending.length === 0 && chunk.byteLength <= limitBytes) {
        this.#drop(pending)
        // The whole body at once: it is copied into a lane's ring, or by its holder, before the callback returns.
        return done(new Uint8Array(chunk))
      }
      const length = pending.length + chunk.byteLength
      if (length > limitBytes) {
        this.#drop(pending)
        return exchange.fail('HTTP_BODY_TOO_LARGE', `The request body is larger than ${limitBytes} bytes`)
      }
      if (!this.#reserve(pending, length, expectedBytes ?? limitBytes)) {
        this.#drop(pending)
        return exchange.fail('HTTP_OVERLOADED', undefined, true)
      }
      // The library reuses the memory when this returns.
      pending.bytes.set(new Uint8Array(chunk), pending.length)
      pending.length = length
      if (!isLast) return
      if (isEndUncertain) {
        res.pause()
        return whenRead(exchange, () => {
          this.#drop(pending)
          done(pending.bytes.subarray(0, length))
        })
      }
      this.#drop(pending)
      if (expectedBytes !== null && length !== expectedBytes) return exchange.close()
      done(pending.bytes.subarray(0, length))
    })
  }

  expire(nowMs: number): void {
    for (const pending of this.open) {
      pending.exchange.look(nowMs)
      const allowedMs = BODY_TIMEOUT_MS + (pending.length / BODY_MIN_BYTES_PER_SEC) * 1000
      const spentMs = nowMs - pending.startedMs
      if (spentMs >= SLOW_BODY_MS && !pending.isSlow) {
        pending.isSlow = true
        if (!pending.exchange.mayUpload('slow body', true)) this.#drop(pending)
      }
      if (spentMs < allowedMs) continue
      this.#drop(pending)
      pending.exchange.fail('HTTP_REQUEST_TIMEOUT', undefined, true)
    }
  }

  #drop(pending: PendingBody): void {
    if (!this.open.delete(pending)) return
    if (pending.owner !== null) this.memory.add(pending.owner, -pending.bytes.byteLength)
    if (pending.isSlow) pending.exchange.uploadOver()
  }

  /**
   * Makes room for `length` bytes, doubling the memory up to `mostBytes`. One piece of memory, not a list of chunks: a client that sends
   * single bytes would cost a hundred bytes for each. False when there is no memory for it.
   */
  #reserve(pending: PendingBody, length: number, mostBytes: number): boolean {
    const before = pending.bytes
    if (length <= before.byteLength) return true
    const doubled = Math.max(2 * before.byteLength, BODY_FIRST_BYTES)
    const capacity = Math.max(Math.min(doubled, mostBytes), length)
    pending.owner ??= pending.exchange.owner
    if (!this.memory.tryAdd(pending.owner, capacity - before.byteLength)) return false
    pending.bytes = Buffer.allocUnsafeSlow(capacity)
    pending.bytes.set(before.subarray(0, pending.length))
    return true
  }
}

interface PendingBody {
  readonly exchange: BodyRequest
  /** Of its memory. */
  owner: Owner | null
  /** The first `length` bytes have come. */
  bytes: Buffer
  length: number
  readonly startedMs: number
  /** It has a place among the uploads. */
  isSlow: boolean
}
