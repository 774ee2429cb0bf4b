// Bodies that are sent at the pace of their clients: files, streams, events, long answers.
import { totalmem } from 'node:os'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { ClientResponse } from './library.ts'

/** A client that reads nothing of a body for this long is cut off, milliseconds. Events bound what waits instead. */
const BODY_STALL_MS = 30_000
/** A comment line keeps proxies from closing a silent stream. */
export const SSE_COMMENT_MS = 15_000
const COMMENT = Buffer.from(': keep-alive\n\n')
const CHECK_MS = 1_000
/** More than 16 KiB in one cork while the socket is full can break chunk framing (uWebSockets.js#1249). */
const MAX_WRITE_BYTES = 15_000

const bodies = new Set<SentBody>()
let timer: NodeJS.Timeout | undefined

function checkAll(): void {
  const nowMs = steadyMs()
  for (const body of bodies) body.check(nowMs)
}

/** A body that is being sent in pieces: those that its client has not read wait here. */
export abstract class SentBody {
  protected readonly res: ClientResponse
  protected readonly pieces: Uint8Array[] = []
  protected isBlocked = false
  protected isOver = false
  readonly #isLast: boolean
  readonly #onGone: () => void

  /**
   * @param isLast nothing is to be read behind the request
   * @param onGone runs once when all is sent, or the client was cut off
   */
  constructor(res: ClientResponse, isLast: boolean, onGone: () => void) {
    this.res = res
    this.#isLast = isLast
    this.#onGone = onGone
    res.onWritable((offset) => {
      this.isBlocked = false
      this.drained(offset)
      this.#flush()
      return !this.isBlocked
    })
    bodies.add(this)
    timer ??= setInterval(checkAll, CHECK_MS).unref()
  }

  send(piece: Uint8Array): void {
    if (this.isOver) return
    this.pieces.push(piece)
    this.#flush()
  }

  #flush(): void {
    while (this.pieces.length > 0 && !this.isBlocked && !this.isOver) this.write(this.pieces[0]!)
  }

  /** Sends a part of the first piece as a chunk. */
  protected write(piece: Uint8Array): void {
    const part = piece.subarray(0, MAX_WRITE_BYTES)
    this.remove(part.byteLength)
    this.res.cork(() => {
      this.isBlocked = !this.res.write(part as Uint8Array<ArrayBuffer>)
    })
    this.taken(part.byteLength)
  }

  /** Removes what was sent of the first piece. */
  protected remove(bytes: number): void {
    const piece = this.pieces[0]!
    if (bytes === piece.byteLength) this.pieces.shift()
    else this.pieces[0] = piece.subarray(bytes)
  }

  /** The library has taken a chunk. */
  protected taken(_bytes: number): void {}

  /** The client has read what the library had taken. @param offset of the next byte of the body */
  protected drained(_offset: number): void {}

  /** Called once a second. @param nowMs by `steadyMs` */
  abstract check(nowMs: number): void

  /** The library closes a connection on which nothing happens. */
  protected keepOpen(): void {
    if (this.#isLast) this.res.pause()
  }

  /** What the client has not read is dropped. @param isBroken the body is not complete: the client sees it, because its end is missing */
  end(isBroken = false): void {
    if (this.isOver) return
    this.forget()
    if (isBroken) this.res.close()
    else {
      this.keepOpen()
      // Without the flag that closes: the library would write its `connection: close` into the body, after the last chunk.
      this.res.cork(() => this.res.end())
    }
  }

  /** The connection is gone. */
  forget(): void {
    if (this.isOver) return
    this.isOver = true
    this.pieces.length = 0
    bodies.delete(this)
    if (bodies.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
    this.#onGone()
  }
}

/** A body whose sender is told how many bytes have left, so that it keeps the client's pace. A client that stops reading is cut off. */
abstract class PacedBody extends SentBody {
  /** -1 when it is not known. */
  protected readonly lengthBytes: number
  protected unreportedBytes = 0
  readonly #onFlushed: (bytes: number) => void
  #progressMs = steadyMs()

  constructor(
    res: ClientResponse,
    lengthBytes: number,
    isLast: boolean,
    onFlushed: (bytes: number) => void,
    onGone: () => void,
  ) {
    super(res, isLast, onGone)
    this.lengthBytes = lengthBytes
    this.#onFlushed = onFlushed
  }

  override send(piece: Uint8Array): void {
    if (!this.isBlocked) this.#progressMs = steadyMs()
    super.send(piece)
  }

  protected flushed(bytes: number): void {
    this.#progressMs = steadyMs()
    this.unreportedBytes += bytes
  }

  protected report(): void {
    const bytes = this.unreportedBytes
    this.unreportedBytes = 0
    this.#onFlushed(bytes)
  }

  check(nowMs: number): void {
    if (this.isBlocked && this.#progressMs < nowMs - BODY_STALL_MS) this.end(true)
  }
}

/** The sender is told of bytes that have left in portions of this size; each lets it read on. */
const FLUSH_REPORT_BYTES = 60_000

/** A body whose length is known. */
export class SizedBody extends PacedBody {
  /** Offset of the first piece in the body. */
  #at = 0

  /** No further piece comes: it is not complete. */
  override end(): void {
    super.end(true)
  }

  /** The library does not keep a piece that did not fit: it says how much of it was written. */
  protected override write(piece: Uint8Array): void {
    this.keepOpen()
    this.res.cork(() => {
      const [isAccepted, isComplete] = this.res.tryEnd(piece as Uint8Array<ArrayBuffer>, this.lengthBytes)
      if (isComplete) {
        // Reported before the end: the sender waits for it.
        this.flushed(piece.byteLength)
        this.report()
        return this.forget()
      }
      this.isBlocked = !isAccepted
      this.drained(this.res.getWriteOffset())
    })
  }

  protected override drained(offset: number): void {
    let flushedBytes = offset - this.#at
    if (flushedBytes <= 0) return
    this.flushed(flushedBytes)
    this.#at = offset
    while (flushedBytes > 0) {
      const part = Math.min(flushedBytes, this.pieces[0]!.byteLength)
      this.remove(part)
      flushedBytes -= part
    }
    if (this.unreportedBytes >= FLUSH_REPORT_BYTES || this.pieces.length === 0) this.report()
    // A library that has kept the last piece for a client ends the answer by itself.
    if (this.#at === this.lengthBytes) this.forget()
  }
}

/** Bytes of a long answer that are given to the library at a time. */
const ANSWER_PIECE_BYTES = 256 << 10

/** An answer that a handler has given as a whole, too long for the kernel to take it whoever reads it. It is sent at the client's pace. */
export class LongAnswer extends SizedBody {
  readonly route: string
  /** Memory of what the client has not taken at once. */
  heldBytes = 0

  constructor(res: ClientResponse, lengthBytes: number, isLast: boolean, route: string) {
    const nobody = (): void => {}
    super(res, lengthBytes, isLast, nobody, nobody)
    this.route = route
  }

  /**
   * @param writeHead writes the status and the headers
   * @param body all of it, lent for the call: what the client does not take at once is copied
   */
  begin(writeHead: () => void, body: Uint8Array): void {
    this.res.cork(() => {
      writeHead()
      this.send(body)
    })
    if (this.isOver) return
    const rest = Buffer.from(this.pieces[0]!)
    this.pieces[0] = rest
    this.heldBytes = rest.byteLength
    longAnswers.add(this)
  }

  protected override write(piece: Uint8Array): void {
    super.write(piece.subarray(0, ANSWER_PIECE_BYTES))
  }

  protected override flushed(bytes: number): void {
    super.flushed(bytes)
    longAnswers.moved(this)
  }

  override forget(): void {
    longAnswers.remove(this)
    super.forget()
  }
}

/** Long answers that wait for their clients may hold this share of the memory that there is, and so much on any machine, bytes. */
const ANSWERS_SHARE = 0.25
const ANSWERS_MIN_TOTAL_BYTES = 256 << 20

/**
 * The long answers that their clients have not read. Their handlers have done their work, so that none is refused: beyond the bound the clients
 * that have read nothing for the longest are cut off.
 */
class LongAnswers {
  // No constraint is 0, or a number beyond all memory.
  maxBytes = Math.max(
    ANSWERS_MIN_TOTAL_BYTES,
    ANSWERS_SHARE * Math.min(totalmem(), process.constrainedMemory() || totalmem()),
  )
  /** Told of each client that is cut off. */
  onCutOff: (answer: LongAnswer) => void = () => {}
  /** Those first that have stood still for the longest. */
  readonly #open = new Set<LongAnswer>()
  #heldBytes = 0

  get open(): number {
    return this.#open.size
  }

  /** The newest stays, whatever its length. */
  add(newest: LongAnswer): void {
    this.#open.add(newest)
    this.#heldBytes += newest.heldBytes
    for (const answer of this.#open) {
      if (this.#heldBytes <= this.maxBytes || answer === newest) return
      this.onCutOff(answer)
      answer.end()
    }
  }

  /** Its client has read something. */
  moved(answer: LongAnswer): void {
    if (this.#open.delete(answer)) this.#open.add(answer)
  }

  remove(answer: LongAnswer): void {
    if (this.#open.delete(answer)) this.#heldBytes -= answer.heldBytes
  }
}

/** Of the one listener that a process has. */
export const longAnswers = new LongAnswers()

/** A body whose length nobody knows. */
export class ChunkedBody extends PacedBody {
  /** Bytes that the library has taken and the client has not. */
  #takenBytes = 0
  #willReport = false

  protected override taken(bytes: number): void {
    if (this.isBlocked) this.#takenBytes += bytes
    else this.flushed(bytes)
  }

  protected override drained(): void {
    this.flushed(this.#takenBytes)
    this.#takenBytes = 0
  }

  /** Reports once for what leaves in one turn of the loop: each report is a frame. */
  protected override flushed(bytes: number): void {
    super.flushed(bytes)
    if (this.#willReport) return
    this.#willReport = true
    setImmediate(() => {
      this.#willReport = false
      if (!this.isOver) this.report()
    })
  }
}

/** Bytes that may wait for one client behind the frame that it is reading; beyond, the client is cut off. */
export const SSE_MAX_WAITING_BYTES = 1 << 20
/** Bytes that may wait for all clients together; beyond, the client with the most is cut off, until the rest fits. */
export const SSE_MAX_TOTAL_BYTES = 256 << 20
/** Memory that a piece takes beside its bytes, roughly: it counts where there are many small ones. */
const PIECE_OVERHEAD_BYTES = 128

const clients = new Set<SseClient>()
/** Bytes that wait for all clients. */
let totalWaitingBytes = 0

/** One client of a stream of events: writes while it reads, keeps a bounded queue while it does not. */
export class SseClient extends SentBody {
  #waitingBytes = 0
  #limitBytes = SSE_MAX_WAITING_BYTES
  #sentMs = steadyMs()

  constructor(res: ClientResponse, onGone: () => void, isLast = false) {
    super(res, isLast, onGone)
    clients.add(this)
  }

  override send(piece: Uint8Array): void {
    if (this.isOver) return
    this.#sentMs = steadyMs()
    // A client that has read everything gets any frame, even one beyond the limit: a snapshot of large records is.
    const isIdle = this.pieces.length === 0
    this.#count(piece.byteLength + PIECE_OVERHEAD_BYTES)
    if (isIdle) this.#limitBytes = SSE_MAX_WAITING_BYTES + this.#waitingBytes
    super.send(piece)
    if (this.#waitingBytes > this.#limitBytes) this.end(true)
    while (totalWaitingBytes > SSE_MAX_TOTAL_BYTES && clients.size > 0) SseClient.#worst().end(true)
  }

  check(nowMs: number): void {
    if (nowMs - this.#sentMs >= SSE_COMMENT_MS) this.send(COMMENT)
  }

  protected override remove(bytes: number): void {
    const before = this.pieces.length
    super.remove(bytes)
    this.#count(-bytes - (before - this.pieces.length) * PIECE_OVERHEAD_BYTES)
  }

  override forget(): void {
    this.#count(-this.#waitingBytes)
    clients.delete(this)
    super.forget()
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes
    totalWaitingBytes += bytes
  }

  static #worst(): SseClient {
    let worst: SseClient | undefined
    for (const client of clients) {
      if (worst === undefined || client.#waitingBytes > worst.#waitingBytes) worst = client
    }
    return worst!
  }
}
