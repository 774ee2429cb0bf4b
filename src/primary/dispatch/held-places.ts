// Who holds the places in the lanes, where most of them are held.
import { exactMs } from '../../core/schedule/clock.ts'
import type { Exchange } from '../http/exchange.ts'
import { BOUNDS, places, SHARE } from '../http/places.ts'
import type { HolderCounts, RequestSlots } from './request-slots.ts'

/** How old the counts may be, milliseconds. */
const COUNT_MS = 20
/** The same before a request is refused. */
const RECOUNT_MS = 1
/** Unless a setting says otherwise, one route or one address holds `SHARE` of the places, where there are at least so many. */
const SHARED_MIN_PLACES = 256

/** Addresses are asked for from this part of it on: what is held without one, and a share beside it, leave room for others. */
const NOTED_FROM = 4

/**
 * Keeps one route and one address from holding all places of requests: also by handlers that go on after their clients have left. Nothing is counted while
 * fewer places are held than one route or address may hold, so that a request costs no more than a sum.
 */
export class HeldPlaces {
  readonly #maxPerRoute: number | undefined
  readonly #maxPerAddress: number | undefined
  #counts: HolderCounts = { byRoute: new Map(), byAddress: new Map() }
  #countedMs = Number.NEGATIVE_INFINITY
  /** Requests that were taken since. */
  #taken = 0
  /** Somebody holds as much as one may. */
  isCrowded = false
  /** Which bound the last request has met. */
  #met: 'route' | 'address' = 'route'

  /** @param maxPerRoute undefined: the default share of all places */
  constructor(maxPerRoute?: number, maxPerAddress?: number) {
    this.#maxPerRoute = maxPerRoute
    this.#maxPerAddress = maxPerAddress
  }

  /** True where the route or the client of a request holds as many places as it may. */
  isFullFor(exchange: Exchange, lanes: readonly { readonly requests: RequestSlots }[]): boolean {
    let held = 0
    let all = 0
    for (let n = 0; n < lanes.length; n++) {
      const { requests } = lanes[n]!
      held += requests.held
      all += requests.max
    }
    const share = all < SHARED_MIN_PLACES ? all : Math.floor(all * SHARE)
    const maxPerRoute = this.#maxPerRoute ?? share
    const maxPerAddress = this.#maxPerAddress ?? share
    const least = Math.min(maxPerRoute, maxPerAddress)
    // Who leaves at once cannot be asked for the address afterwards.
    if (this.#maxPerAddress !== undefined || NOTED_FROM * held >= least) exchange.noteNetwork()
    this.isCrowded = all > 0 && held >= least
    const { route } = exchange
    if (!this.isCrowded || route === null || route.zone !== 'application') return false
    if (exactMs() - this.#countedMs >= COUNT_MS) this.#count(lanes)
    let bound = this.#boundOf(exchange, maxPerRoute, maxPerAddress)
    // What was taken since is not known to be held still; counting reads all places, and this may be asked very often.
    if (bound !== null && this.#taken > 0 && exactMs() - this.#countedMs >= RECOUNT_MS) {
      this.#count(lanes)
      bound = this.#boundOf(exchange, maxPerRoute, maxPerAddress)
    }
    if (bound !== null) this.#met = bound
    else this.#take(exchange)
    return bound !== null
  }

  #boundOf({ route, network }: Exchange, maxPerRoute: number, maxPerAddress: number): 'route' | 'address' | null {
    const { byRoute, byAddress } = this.#counts
    if ((byRoute.get(route!.number) ?? 0) >= maxPerRoute) return 'route'
    return network !== '' && (byAddress.get(network) ?? 0) >= maxPerAddress ? 'address' : null
  }

  /** Until it is counted again. */
  #take({ route, network }: Exchange): void {
    const { byRoute, byAddress } = this.#counts
    this.#taken++
    byRoute.set(route!.number, (byRoute.get(route!.number) ?? 0) + 1)
    byAddress.set(network, (byAddress.get(network) ?? 0) + 1)
  }

  /** Tells of a request that has just met a bound, and is not to wait. @returns false */
  refuse({ label, network }: Exchange): false {
    const who = this.#met === 'route' ? label : 'one address'
    places.refuse('Requests', `${who} has all that it may`, BOUNDS.requests[this.#met], network)
    return false
  }

  #count(lanes: readonly { readonly requests: RequestSlots }[]): void {
    this.#countedMs = exactMs()
    this.#taken = 0
    this.#counts = { byRoute: new Map(), byAddress: new Map() }
    for (const { requests } of lanes) requests.countHolders(this.#counts)
  }
}
