// The writing end of a ring, with its doorbell and the port for large bodies.
import type { MessagePort } from 'node:worker_threads'
import { atTurnEnd, recoverTurnEnd } from '../../core/schedule/waiting.ts'
import { BULK_FLAG, INLINE_MAX_BYTES, type KeptKind, KIND_MASK, type Kind, PRIORITY } from '../frames/frames.ts'
import { frameMemory, RingProducer } from '../memory/spsc-ring.ts'
import { Frame } from './frame.ts'

/** Frames that wait for room in the ring, at most. Kinds that are never refused may exceed it. */
export const BACKLOG_MAX_FRAMES = 16_384
const BACKLOG_RETRY_MS = 1
/**
 * The other side is rung after this many new frames, so that a long turn of the loop does not keep it asleep; after each ring of one turn
 * twice as many: else it may wake for each 32 of a thousand.
 */
const FRAMES_PER_RING = 32
const MAX_FRAMES_PER_RING = 512
/** Frames that are not urgent wait this long for the doorbell, milliseconds, and take this much of the ring, at most. */
const LAZY_MS = 10
const LAZY_MAX_BYTES = 256 * 1024

interface Waiting {
  kind: Kind
  id: number
  body: ArrayBuffer
  bodyBytes: number
}

/**
 * The sending end of a lane's ring, with its doorbell and the port for large bodies.
 *
 * `begin` a frame, write its body, `send` it. Its kind says what happens when there is no room (PRIORITY in frames.ts).
 * The other side is rung at the end of each turn of the loop, or of each batch of its own frames, and only when it has gone to sleep.
 */
export class Outbox {
  /** Asked how far the other side has read; only this writes to it. */
  readonly ring: RingProducer
  readonly #doorbell: MessagePort
  readonly #bulk: MessagePort
  readonly #frame = new Frame((bodyBytes) => this.#post(bodyBytes))
  readonly #backlog: Waiting[] = []
  /** Memory of the frames that wait for room in the ring. */
  waitingBytes = 0
  /** Memory of the frame that is begun, where that is not the ring. */
  #scratch: ArrayBuffer | null = null
  /** Frames since the last ring. */
  #unrung = 0
  #framesPerRing = FRAMES_PER_RING
  #ringScheduled = false
  #isInBatch = false
  #retryTimer: NodeJS.Timeout | undefined
  #lazyTimer: NodeJS.Timeout | undefined
  #closed = false

  constructor(memory: SharedArrayBuffer, doorbell: MessagePort, bulk: MessagePort) {
    this.ring = new RingProducer(memory)
    this.#doorbell = doorbell
    this.#bulk = bulk
    this.#frame.use(this.ring)
  }

  /** @param maxBytes length of the body at most @returns the frame to write, which is null when there is no room for one of its kind */
  begin(kind: KeptKind, id: number, maxBytes: number): Frame
  begin(kind: Kind, id: number, maxBytes: number): Frame | null
  begin(kind: Kind, id: number, maxBytes: number): Frame | null {
    const frame = this.#frame
    // Whoever wrote the last one may have thrown, or was stopped.
    if (this.#scratch !== null) this.#forget()
    frame.kind = kind
    frame.id = id
    if (this.#backlog.length === 0 && !this.#closed) {
      frame.at = this.ring.reserve(maxBytes <= INLINE_MAX_BYTES ? maxBytes : 0)
      if (frame.at >= 0 && maxBytes <= INLINE_MAX_BYTES) return frame
    } else frame.at = -1
    if (frame.at < 0 && !this.#mayWait(kind)) return null
    this.#scratch = new ArrayBuffer((maxBytes + 7) & ~7)
    frame.use(frameMemory(this.#scratch))
    frame.at = 0
    return frame
  }

  /** @returns whether a frame may join the backlog */
  #mayWait(kind: Kind): boolean {
    const { whenFull } = PRIORITY[kind]
    return whenFull === 'keep' || (whenFull === 'wait' && this.#backlog.length < BACKLOG_MAX_FRAMES && !this.#closed)
  }

  #forget(): void {
    this.#scratch = null
    this.#frame.at = -1
    this.#frame.use(this.ring)
  }

  /** Sends the frame that is begun. */
  #post(bodyBytes: number): number {
    const { kind, id } = this.#frame
    let position = -1
    if (this.#scratch === null) {
      this.#frame.at = -1
      position = this.ring.commit(bodyBytes, kind, id)
    } else {
      const waiting = { kind, id, body: this.#scratch, bodyBytes }
      this.#forget()
      // Nobody reads it any more.
      if (this.#closed) return -1
      if (this.#backlog.length > 0 || !this.#trySend(waiting)) this.#wait(waiting)
    }
    if (PRIORITY[kind].isLazy && this.ring.usedBytes < LAZY_MAX_BYTES) {
      this.#lazyTimer ??= setTimeout(this.#endTurn, LAZY_MS)
      return position
    }
    if (++this.#unrung === this.#framesPerRing) {
      this.#ringDoorbell()
      if (this.#framesPerRing < MAX_FRAMES_PER_RING) this.#framesPerRing *= 2
    }
    if (!this.#ringScheduled && !this.#isInBatch) {
      this.#ringScheduled = true
      atTurnEnd(this.#endTurn)
    }
    return position
  }

  /** A batch of frames of the other side is read: until its end nothing need be scheduled for the answers to them. */
  beginBatch(): void {
    this.#isInBatch = true
  }

  endBatch(): void {
    this.#isInBatch = false
    if (this.#unrung > 0) this.#ringAtEnd()
  }

  /** Sends a frame of text alone, or an empty one. @returns false when there was no room for it */
  sendText(kind: KeptKind, id: number, text: string): void
  sendText(kind: Kind, id: number, text: string): boolean
  sendText(kind: Kind, id: number, text: string): boolean {
    // Three times the length is a guess that wastes room, which is short only where frames wait.
    const isGuessed = text.length * 3 <= INLINE_MAX_BYTES && this.#backlog.length === 0
    const frame = this.begin(kind, id, isGuessed ? text.length * 3 : Buffer.byteLength(text))
    if (frame === null) return false
    frame.send(text === '' ? 0 : frame.bytes.utf8Write(text, frame.at))
    return true
  }

  /** Rings at once: the thread is about to block for an answer. */
  flush(): void {
    this.#ringDoorbell()
  }

  /** The other side is gone. @returns ids of the frames of one kind that it never began */
  takeBackAll(kind: Kind): Set<number> {
    const ids = new Set<number>()
    const visit = (each: number, id: number): void => {
      if ((each & KIND_MASK) === kind) ids.add(id)
    }
    this.ring.takeBackAll(visit)
    for (const waiting of this.#backlog) visit(waiting.kind, waiting.id)
    return ids
  }

  /** What ran may have been stopped in the midst of a frame or of a batch, or before the end of its turn. */
  recover(): void {
    this.#forget()
    this.#isInBatch = false
    this.#ringScheduled = false
    recoverTurnEnd()
    if (this.#backlog.length > 0) {
      clearTimeout(this.#retryTimer)
      this.#retryTimer = setTimeout(this.#retry, BACKLOG_RETRY_MS)
    }
    this.#doorbell.postMessage(0)
  }

  close(): void {
    this.#closed = true
    this.#backlog.length = 0
    this.waitingBytes = 0
    clearTimeout(this.#retryTimer)
    clearTimeout(this.#lazyTimer)
  }

  #trySend(waiting: Waiting): boolean {
    const large = waiting.bodyBytes > INLINE_MAX_BYTES
    const at = this.ring.reserve(large ? 0 : waiting.bodyBytes)
    if (at < 0) return false
    if (large) {
      // Posted before the header is committed, so that the reader of the header finds the body.
      const body = waiting.body
      this.#bulk.postMessage({ body, bodyBytes: waiting.bodyBytes }, [body])
      this.ring.commit(0, waiting.kind | BULK_FLAG, waiting.id)
    } else {
      this.ring.bytes.set(new Uint8Array(waiting.body, 0, waiting.bodyBytes), at)
      this.ring.commit(waiting.bodyBytes, waiting.kind, waiting.id)
    }
    return true
  }

  #wait(waiting: Waiting): void {
    this.#backlog.push(waiting)
    this.waitingBytes += waiting.body.byteLength
    this.#retryTimer ??= setTimeout(this.#retry, BACKLOG_RETRY_MS)
  }

  readonly #retry = (): void => {
    this.#retryTimer = undefined
    let sent = 0
    while (sent < this.#backlog.length) {
      const waiting = this.#backlog[sent]!
      // Read before it is sent: a large body is transferred, and empty here afterwards.
      const { byteLength } = waiting.body
      if (!this.#trySend(waiting)) break
      this.waitingBytes -= byteLength
      sent++
    }
    this.#backlog.splice(0, sent)
    if (this.#backlog.length > 0) this.#retryTimer = setTimeout(this.#retry, BACKLOG_RETRY_MS)
    if (sent > 0) this.#ringDoorbell()
  }

  readonly #endTurn = (): void => {
    this.#ringScheduled = false
    this.#ringAtEnd()
  }

  #ringAtEnd(): void {
    this.#framesPerRing = FRAMES_PER_RING
    this.#ringDoorbell()
  }

  #ringDoorbell(): void {
    this.#unrung = 0
    if (this.#lazyTimer !== undefined) {
      clearTimeout(this.#lazyTimer)
      this.#lazyTimer = undefined
    }
    if (!this.#closed && this.ring.ring()) this.#doorbell.postMessage(0)
  }
}
