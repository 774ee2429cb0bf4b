import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import type { Exchange } from './exchange.ts'

/** Notices the first request whose headers may have lost bytes: uWebSockets.js drops those beyond ASCII at both ends of a value. */
export class HeaderLoss {
  readonly #onFirst: (exchange: Exchange) => void
  #isTold = false

  constructor(onFirst: (exchange: Exchange) => void) {
    this.#onFirst = onFirst
  }

  /** @param frame has something beyond ASCII. Only where other such bytes are left does a loss show */
  look(frame: RequestFrame, exchange: Exchange): void {
    if (this.#isTold) return
    const { text, pathLength, queryLength, idsLength, ipLength, traceLength } = frame
    const headers = text.slice(idsLength + ipLength + pathLength + queryLength + traceLength)
    if (Buffer.byteLength(headers) === headers.length) return
    this.#isTold = true
    this.#onFirst(exchange)
  }
}
