// How many answers that last may be open at a time: in all, of a route, of an address.
import { networkOf } from '../../core/http/network.ts'

/** A body of a known length that is not longer leaves for the kernel at once, whoever reads it. */
export const LASTING_MIN_BYTES = 65_536

/** The place of one of them. */
export type LastingPlace = readonly [network: string, route: string]

/**
 * Counts the answers that last: event streams, WebSockets, and bodies that are sent at the client's pace. They hold no place in a lane, so
 * that one visitor who opens many does not keep the requests of all others out. Who is beyond the bounds gets 503 on such a route alone.
 */
export class LastingAnswers {
  /** `HTTP_MAX_STREAMS`, `HTTP_MAX_STREAMS_PER_ROUTE` and `HTTP_MAX_STREAMS_PER_ADDRESS`. */
  max = Number.POSITIVE_INFINITY
  maxPerRoute = Number.POSITIVE_INFINITY
  maxPerAddress = Number.POSITIVE_INFINITY
  /** Told of each one that is refused. */
  onRefused: (what: string, address: string) => void = () => {}
  #open = 0
  /** By network, and by route: `GET /events`. */
  readonly #openBy = new Map<string, number>()

  /** @param route its method and path. @returns what `leave` wants when it has ended; null where it is to be refused */
  enter(address: string, route: string): LastingPlace | null {
    const network = networkOf(address)
    const ofNetwork = this.#openBy.get(network) ?? 0
    const ofRoute = this.#openBy.get(route) ?? 0
    if (this.#open >= this.max) {
      this.onRefused(`Streams are refused: ${this.max} are open (HTTP_MAX_STREAMS)`, address)
      return null
    }
    if (ofRoute >= this.maxPerRoute) {
      this.onRefused(`Streams are refused: ${route} has ${ofRoute} (HTTP_MAX_STREAMS_PER_ROUTE)`, address)
      return null
    }
    if (ofNetwork >= this.maxPerAddress) {
      this.onRefused(`Streams are refused: one address has ${ofNetwork} (HTTP_MAX_STREAMS_PER_ADDRESS)`, address)
      return null
    }
    this.#open++
    this.#openBy.set(network, ofNetwork + 1).set(route, ofRoute + 1)
    return [network, route]
  }

  leave(place: LastingPlace): void {
    this.#open--
    for (const name of place) {
      const left = this.#openBy.get(name)! - 1
      if (left === 0) this.#openBy.delete(name)
      else this.#openBy.set(name, left)
    }
  }

  get open(): number {
    return this.#open
  }
}

/** Of the one listener that a process has. */
export const lastingAnswers = new LastingAnswers()
