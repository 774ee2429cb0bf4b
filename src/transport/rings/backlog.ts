// Frames that wait for room in a ring.
import type { Kind } from '../frames/frames.ts'

/** Frames that wait at most. Kinds that are never refused may exceed it. */
export const BACKLOG_MAX_FRAMES = 16_384
const RETRY_MS = 1

export interface WaitingFrame {
  kind: Kind
  id: number
  body: ArrayBuffer
  bodyBytes: number
}

/** Frames that found no room in the ring, sent in their order as soon as there is some. */
export class Backlog {
  readonly #frames: WaitingFrame[] = []
  readonly #trySend: (frame: WaitingFrame) => boolean
  readonly #onSent: () => void
  #retryTimer: NodeJS.Timeout | undefined
  /** Memory of their bodies. */
  bytes = 0

  /** @param trySend returns false while there is no room @param onSent called after some of them were sent */
  constructor(trySend: (frame: WaitingFrame) => boolean, onSent: () => void) {
    this.#trySend = trySend
    this.#onSent = onSent
  }

  get isEmpty(): boolean {
    return this.#frames.length === 0
  }

  get isFull(): boolean {
    return this.#frames.length >= BACKLOG_MAX_FRAMES
  }

  get frames(): readonly WaitingFrame[] {
    return this.#frames
  }

  add(frame: WaitingFrame): void {
    this.#frames.push(frame)
    this.bytes += frame.body.byteLength
    this.#retryTimer ??= setTimeout(this.#retry, RETRY_MS)
  }

  /** Called after a terminated handler: its retry may never have ended. */
  recover(): void {
    clearTimeout(this.#retryTimer)
    this.#retryTimer = this.isEmpty ? undefined : setTimeout(this.#retry, RETRY_MS)
  }

  clear(): void {
    this.#frames.length = 0
    this.bytes = 0
    clearTimeout(this.#retryTimer)
  }

  readonly #retry = (): void => {
    this.#retryTimer = undefined
    let sent = 0
    for (const frame of this.#frames) {
      // Read before it is sent: a large body is transferred, and empty here afterwards.
      const { byteLength } = frame.body
      if (!this.#trySend(frame)) break
      this.bytes -= byteLength
      sent++
    }
    this.#frames.splice(0, sent)
    if (!this.isEmpty) this.#retryTimer = setTimeout(this.#retry, RETRY_MS)
    if (sent > 0) this.#onSent()
  }
}
