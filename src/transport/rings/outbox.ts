// The writing end of a ring, with its doorbell and the port for large bodies.
import type { MessagePort } from 'node:worker_threads'
import { BULK_FLAG, INLINE_MAX_BYTES, type KeptKind, KIND_MASK, type Kind, PRIORITY } from '../frames/frames.ts'
import { frameMemory, RingProducer } from '../memory/spsc-ring.ts'
import { Backlog, type WaitingFrame } from './backlog.ts'
import { Doorbell } from './doorbell.ts'
import { Frame } from './frame.ts'

/**
 * The sending end of a lane's ring: `begin` a frame, write its body, `send` it. Its kind says what happens when there is no room (PRIORITY in
 * frames.ts).
 */
export class Outbox {
  /** Asked how far the other side has read; only this writes to it. */
  readonly ring: RingProducer
  readonly #doorbell: Doorbell
  readonly #bulk: MessagePort
  readonly #frame = new Frame((bodyBytes) => this.#post(bodyBytes))
  readonly #backlog = new Backlog(
    (waiting) => this.#trySend(waiting),
    () => this.#doorbell.ring(),
  )
  /** Memory of the frame that is begun, where that is not the ring. */
  #scratch: ArrayBuffer | null = null
  #isClosed = false

  constructor(memory: SharedArrayBuffer, doorbell: MessagePort, bulk: MessagePort) {
    this.ring = new RingProducer(memory)
    this.#doorbell = new Doorbell(this.ring, doorbell)
    this.#bulk = bulk
    this.#frame.use(this.ring)
  }

  /** Memory of the frames that wait for room in the ring. */
  get waitingBytes(): number {
    return this.#backlog.bytes
  }

  /** @param maxBytes length of the body at most @returns the frame to write; null when there is no room for one of its kind */
  begin(kind: KeptKind, id: number, maxBytes: number): Frame
  begin(kind: Kind, id: number, maxBytes: number): Frame | null
  begin(kind: Kind, id: number, maxBytes: number): Frame | null {
    const frame = this.#frame
    // Whoever wrote the last one has thrown, or was stopped.
    if (this.#scratch !== null) this.#forget()
    frame.kind = kind
    frame.id = id
    if (this.#backlog.isEmpty && !this.#isClosed) {
      frame.at = this.ring.reserve(maxBytes <= INLINE_MAX_BYTES ? maxBytes : 0)
      if (frame.at >= 0 && maxBytes <= INLINE_MAX_BYTES) return frame
    } else frame.at = -1
    if (frame.at < 0 && !this.#mayWait(kind)) return null
    this.#scratch = new ArrayBuffer((maxBytes + 7) & ~7)
    frame.use(frameMemory(this.#scratch))
    frame.at = 0
    return frame
  }

  #mayWait(kind: Kind): boolean {
    const { whenFull } = PRIORITY[kind]
    return whenFull === 'keep' || (whenFull === 'wait' && !this.#backlog.isFull && !this.#isClosed)
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
      if (this.#isClosed) return -1
      if (!this.#backlog.isEmpty || !this.#trySend(waiting)) this.#backlog.add(waiting)
    }
    this.#doorbell.sent(PRIORITY[kind].isLazy)
    return position
  }

  #trySend({ kind, id, body, bodyBytes }: WaitingFrame): boolean {
    const large = bodyBytes > INLINE_MAX_BYTES
    const at = this.ring.reserve(large ? 0 : bodyBytes)
    if (at < 0) return false
    if (large) {
      // Posted before the header is committed, so that the reader of the header finds the body.
      this.#bulk.postMessage({ body, bodyBytes }, [body])
      this.ring.commit(0, kind | BULK_FLAG, id)
    } else {
      this.ring.bytes.set(new Uint8Array(body, 0, bodyBytes), at)
      this.ring.commit(bodyBytes, kind, id)
    }
    return true
  }

  /** Sends a frame of text alone, or an empty one. @returns false when there was no room for it */
  sendText(kind: KeptKind, id: number, text: string): void
  sendText(kind: Kind, id: number, text: string): boolean
  sendText(kind: Kind, id: number, text: string): boolean {
    // Three times the length is a guess that wastes room, which is short only where frames wait.
    const isGuessed = text.length * 3 <= INLINE_MAX_BYTES && this.#backlog.isEmpty
    const frame = this.begin(kind, id, isGuessed ? text.length * 3 : Buffer.byteLength(text))
    if (frame === null) return false
    frame.send(text === '' ? 0 : frame.bytes.utf8Write(text, frame.at))
    return true
  }

  beginBatch(): void {
    this.#doorbell.beginBatch()
  }

  endBatch(): void {
    this.#doorbell.endBatch()
  }

  /** The other side is gone. @returns ids of the frames of one kind that it never began */
  takeBackAll(kind: Kind): Set<number> {
    const ids = new Set<number>()
    const visit = (each: number, id: number): void => {
      if ((each & KIND_MASK) === kind) ids.add(id)
    }
    this.ring.takeBackAll(visit)
    for (const waiting of this.#backlog.frames) visit(waiting.kind, waiting.id)
    return ids
  }

  /** Called after a terminated handler, which may have been writing a frame. */
  recover(): void {
    this.#forget()
    this.#backlog.recover()
    this.#doorbell.recover()
  }

  close(): void {
    this.#isClosed = true
    this.#backlog.clear()
    this.#doorbell.close()
  }
}
