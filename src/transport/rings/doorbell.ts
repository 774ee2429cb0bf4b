// When the other side of a ring is rung.
import type { MessagePort } from 'node:worker_threads'
import { atTurnEnd, recoverTurnEnd } from '../../core/schedule/waiting.ts'
import type { RingProducer } from '../memory/spsc-ring.ts'

/**
 * The other side is rung after this many new frames, so that a long turn of the loop does not keep it asleep; after each ring of one turn
 * twice as many: else it may wake for each 32 of a thousand.
 */
const FRAMES_PER_RING = 32
const MAX_FRAMES_PER_RING = 512
/** Lazy frames wait this long for the doorbell, milliseconds, and take this much of the ring, at most. */
const LAZY_MS = 10
const LAZY_MAX_BYTES = 256 * 1024

/**
 * Rings at the end of each turn of the loop, or of each batch of the other side's frames, and only when that side has gone to sleep: a
 * message between threads costs more than any frame.
 */
export class Doorbell {
  readonly #ring: RingProducer
  readonly #port: MessagePort
  /** Frames since the last ring. */
  #unrung = 0
  #framesPerRing = FRAMES_PER_RING
  #isScheduled = false
  #isInBatch = false
  #lazyTimer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(ring: RingProducer, port: MessagePort) {
    this.#ring = ring
    this.#port = port
  }

  /** A frame is in the ring, or waits for room. @param isLazy the other side need not be woken at once */
  sent(isLazy: boolean): void {
    if (isLazy && this.#ring.usedBytes < LAZY_MAX_BYTES) {
      this.#lazyTimer ??= setTimeout(this.#endTurn, LAZY_MS)
      return
    }
    if (++this.#unrung === this.#framesPerRing) {
      this.ring()
      if (this.#framesPerRing < MAX_FRAMES_PER_RING) this.#framesPerRing *= 2
    }
    if (this.#isScheduled || this.#isInBatch) return
    this.#isScheduled = true
    atTurnEnd(this.#endTurn)
  }

  /** A batch of frames of the other side is read: until its end nothing need be scheduled for the answers to them. */
  beginBatch(): void {
    this.#isInBatch = true
  }

  endBatch(): void {
    this.#isInBatch = false
    if (this.#unrung > 0) this.#ringAtEnd()
  }

  ring(): void {
    this.#unrung = 0
    if (this.#lazyTimer !== undefined) {
      clearTimeout(this.#lazyTimer)
      this.#lazyTimer = undefined
    }
    if (!this.#isClosed && this.#ring.ring()) this.#port.postMessage(0)
  }

  /** Called after a terminated handler: a batch or a turn may never have ended. Rings in any case. */
  recover(): void {
    this.#isInBatch = false
    this.#isScheduled = false
    recoverTurnEnd()
    this.#port.postMessage(0)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#lazyTimer)
  }

  readonly #endTurn = (): void => {
    this.#isScheduled = false
    this.#ringAtEnd()
  }

  #ringAtEnd(): void {
    this.#framesPerRing = FRAMES_PER_RING
    this.ring()
  }
}
