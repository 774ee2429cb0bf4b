import type { Exchange } from './exchange.ts'
import type { ClientResponse } from './library.ts'
import { type HeldBytes, StreamedBody } from './streamed-body.ts'

/** Memory of all streamed bodies that no handler has asked for yet, at most. A body that needs more is answered 503. */
export const STREAMED_BODIES_MAX_BYTES = 256 << 20

/** The bodies that are handed over while they come. The listener's sweep ends those that are too slow. */
export class StreamedBodies {
  readonly #open = new Set<StreamedBody>()
  readonly #held: HeldBytes

  constructor(maxBytes = STREAMED_BODIES_MAX_BYTES) {
    this.#held = { bytes: 0, maxBytes }
  }

  get size(): number {
    return this.#open.size
  }

  /** Memory that the bodies have now. */
  get heldBytes(): number {
    return this.#held.bytes
  }

  /** @param expectedBytes the content length, or null for a chunked body. @param isStrict the end of a chunked body is certain */
  receive(
    res: ClientResponse,
    exchange: Exchange,
    expectedBytes: number | null,
    limitBytes: number,
    isStrict: boolean,
  ): StreamedBody {
    const body = new StreamedBody({
      res,
      exchange,
      expectedBytes,
      limitBytes,
      held: this.#held,
      isStrict,
      onOver: this.#forget,
    })
    this.#open.add(body)
    return body
  }

  readonly #forget = (body: StreamedBody): void => {
    this.#open.delete(body)
  }

  check(nowMs: number): void {
    for (const body of this.#open) body.check(nowMs)
  }
}
