import { messageWeight } from '../../transport/frames/message-weight.ts'

/** Weight of the messages of all sockets of one thread that have come and are not handled, at most. */
export const SOCKETS_MAX_UNHANDLED_BYTES = 64 << 20

/** The byte budget of WebSocket messages that have come and are not handled yet. */
export class UnhandledMessages {
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  get isExceeded(): boolean {
    return this.#bytes > this.#maxBytes
  }

  /** A socket opens: its `open` handler is to run. */
  addOpening(): void {
    this.add(0)
  }

  /** Counts a message, also one beyond the budget. */
  add(messageBytes: number): void {
    this.#bytes += messageWeight(messageBytes)
  }

  /** Counts a message that fits. False when it does not. */
  tryAdd(messageBytes: number): boolean {
    const bytes = this.#bytes + messageWeight(messageBytes)
    if (bytes > this.#maxBytes) return false
    this.#bytes = bytes
    return true
  }

  /** @param weight as `messageWeight` gives it */
  handled(weight: number): void {
    this.#bytes = Math.max(0, this.#bytes - weight)
  }
}
