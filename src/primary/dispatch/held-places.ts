// Who holds the places in the lanes, where most of them are held.
import { exactMs } from '../../core/schedule/clock.ts'
import type { Exchange } from '../http/exchange.ts'
import type { HolderCounts, RequestSlots } from './request-slots.ts'

/** How old the counts may be, milliseconds. */
const COUNT_MS = 20
/** Unless a setting says otherwise, one route or one address holds this share of the places, where there are at least so many. */
const DEFAULT_SHARE = 0.75
const DEFAULT_MIN_PLACES = 256

/**
 * Keeps one route and one address from holding all places of requests: also by handlers that go on after their clients have left. Nothing is counted while
 * fewer places are held than one route or address may hold, so that a request costs no more than a sum.
 */
export class HeldPlaces {
  readonly #maxPerRoute: number | undefined
  readonly #maxPerAddress: number | undefined
  #counts: HolderCounts = { byRoute: new Map(), byAddress: new Map() }
  #countedMs = Number.NEGATIVE_INFINITY
  /** Somebody holds as much as one may. */
  isCrowded = false

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
    const share = all < DEFAULT_MIN_PLACES ? all : Math.floor(all * DEFAULT_SHARE)
    const maxPerRoute = this.#maxPerRoute ?? share
    const maxPerAddress = this.#maxPerAddress ?? share
    const least = Math.min(maxPerRoute, maxPerAddress)
    // Who leaves at once cannot be asked for the address afterwards.
    if (this.#maxPerAddress !== undefined || 2 * held >= least) exchange.noteNetwork()
    this.isCrowded = all > 0 && held >= least
    const { route } = exchange
    if (!this.isCrowded || route === null || route.zone !== 'application') return false
    const { byRoute, byAddress } = this.#count(lanes)
    const ofRoute = byRoute.get(route.number) ?? 0
    const ofAddress = exchange.network === '' ? 0 : (byAddress.get(exchange.network) ?? 0)
    if (ofRoute >= maxPerRoute || ofAddress >= maxPerAddress) return true
    // Until it is counted again.
    byRoute.set(route.number, ofRoute + 1)
    byAddress.set(exchange.network, ofAddress + 1)
    return false
  }

  #count(lanes: readonly { readonly requests: RequestSlots }[]): HolderCounts {
    const nowMs = exactMs()
    if (nowMs - this.#countedMs < COUNT_MS) return this.#counts
    this.#countedMs = nowMs
    this.#counts = { byRoute: new Map(), byAddress: new Map() }
    for (const { requests } of lanes) requests.countHolders(this.#counts)
    return this.#counts
  }
}
