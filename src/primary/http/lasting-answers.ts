import { networkOf } from '../../core/http/network.ts'

/** A body of a known length that is not longer leaves for the kernel at once, whoever reads it. */
export const LASTING_MIN_BYTES = 65_536

/**
 * Counts the answers that last: event streams, WebSockets, and bodies that are sent at the client's pace. They hold no place in a lane, so
 * that one visitor who opens many does not keep the requests of all others out. Who is beyond the bounds gets 503 on such a route alone.
 */
export class LastingAnswers {
  /** `HTTP_MAX_STREAMS` and `HTTP_MAX_STREAMS_PER_ADDRESS`. */
  max = Number.POSITIVE_INFINITY
  maxPerAddress = Number.POSITIVE_INFINITY
  /** Told of each one that is refused. */
  onRefused: (what: string, address: string) => void = () => {}
  #open = 0
  readonly #openByNetwork = new Map<string, number>()

  /** @returns what `leave` wants when it has ended; null where it is to be refused */
  enter(address: string): string | null {
    const network = networkOf(address)
    const ofNetwork = this.#openByNetwork.get(network) ?? 0
    if (this.#open >= this.max) {
      this.onRefused(`Streams are refused: ${this.max} are open (HTTP_MAX_STREAMS)`, address)
      return null
    }
    if (ofNetwork >= this.maxPerAddress) {
      this.onRefused(`Streams are refused: one address has ${ofNetwork} (HTTP_MAX_STREAMS_PER_ADDRESS)`, address)
      return null
    }
    this.#open++
    this.#openByNetwork.set(network, ofNetwork + 1)
    return network
  }

  leave(network: string): void {
    this.#open--
    const left = this.#openByNetwork.get(network)! - 1
    if (left === 0) this.#openByNetwork.delete(network)
    else this.#openByNetwork.set(network, left)
  }

  get open(): number {
    return this.#open
  }
}

/** Of the one listener that a process has. */
export const lastingAnswers = new LastingAnswers()
