// The writing end of a ring, with its doorbell and the port for large bodies.
import type { MessagePort } from 'node:worker_threads'
import { atTurnEnd, recoverTurnEnd } from '../../core/schedule/waiting.ts'
import { BULK_FLAG, INLINE_MAX_BYTES, KIND_MASK } from '../frames/frames.ts'
import { type FrameMemory, frameMemory, type RawBuffer, RingProducer } from '../memory/spsc-ring.ts'

/** Frames that wait for room in the ring, at most. Answers do not count: the other side has asked for each of them. */
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
  kind: number
  id: number
  body: ArrayBuffer
  bodyBytes: number
}

/**
 * The sending end of a lane's ring, with its doorbell and the port for large bodies.
 *
 * `begin(max)` gives the offset to write a body to, in `bytes` and `words` (the ring's, or a buffer's when the body is large or the ring is full);
 * `end(bytes, kind, id)` sends it. The other side is rung at the end of each turn of the loop, or of each batch of its own frames, and only when it has gone to sleep.
 */
export class Outbox implements FrameMemory {
  bytes!: RawBuffer
  words!: Int32Array
  doubles!: Float64Array
  /** Asked how far the other side has read; only this writes to it. */
  readonly ring: RingProducer
  readonly #doorbell: MessagePort
  readonly #bulk: MessagePort
  readonly #backlog: Waiting[] = []
  /** Memory of the frames that wait for room in the ring. */
  waitingBytes = 0
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
    this.#use(this.ring)
  }

  #use({ bytes, words, doubles }: FrameMemory): void {
    this.bytes = bytes
    this.words = words
    this.doubles = doubles
  }

  /** @returns where to write a body of up to `maxBytes`; -1 when the ring is full and `mayWait` is false, or the backlog is full and this is no answer */
  begin(maxBytes: number, mayWait: boolean, isAnswer = false): number {
    if (maxBytes <= INLINE_MAX_BYTES && this.#backlog.length === 0) {
      const at = this.ring.reserve(maxBytes)
      if (at >= 0) return at
    }
    if (!mayWait && (this.#backlog.length > 0 || this.ring.reserve(0) < 0)) return -1
    if ((this.#backlog.length >= BACKLOG_MAX_FRAMES && !isAnswer) || this.#closed) return -1
    this.#scratch = new ArrayBuffer((maxBytes + 7) & ~7)
    this.#use(frameMemory(this.#scratch))
    return 0
  }

  /**
   * Sends what was written since `begin`.
   * @param isUrgent false for a frame that nothing waits for: the other side is rung within LAZY_MS, or when the ring fills up
   * @returns the frame's position in the ring, or -1 when it waits or its body goes by the port
   */
  end(bodyBytes: number, kind: number, id: number, isUrgent = true): number {
    let position = -1
    if (this.#scratch === null) position = this.ring.commit(bodyBytes, kind, id)
    else {
      const waiting = { kind, id, body: this.#scratch, bodyBytes }
      this.#scratch = null
      this.#use(this.ring)
      if (this.#backlog.length > 0 || !this.#trySend(waiting)) this.#wait(waiting)
    }
    if (!isUrgent && this.ring.usedBytes < LAZY_MAX_BYTES) {
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

  /** Sends the answer to a frame of the other side. Never refused: a caller waits for it there, and the number of callers is limited. */
  answerText(kind: number, id: number, text: string): void {
    this.sendText(kind, id, text, true, true)
  }

  /** Sends a frame of text alone, or an empty one. False when there was no room at all. */
  sendText(kind: number, id: number, text: string, mayWait = true, isAnswer = false): boolean {
    // Three times the length is a guess that wastes room, which is short only where frames wait.
    const isGuessed = text.length * 3 <= INLINE_MAX_BYTES && this.#backlog.length === 0
    const maxBytes = isGuessed ? text.length * 3 : Buffer.byteLength(text)
    const at = this.begin(maxBytes, mayWait, isAnswer)
    if (at < 0) return false
    this.end(text === '' ? 0 : this.bytes.utf8Write(text, at), kind, id)
    return true
  }

  /** Rings at once: the thread is about to block for an answer. */
  flush(): void {
    this.#ringDoorbell()
  }

  /** The other side is gone. @returns ids of the frames of one kind that it never began */
  takeBackAll(kind: number): Set<number> {
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
    this.#scratch = null
    this.#use(this.ring)
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
