// The requests in flight in one lane, by slot, and how fast it answers them.
import type { WorkInFlight } from '../../contracts/registry.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { Exchange } from '../http/exchange.ts'

const STREAM = 1
const FILE = 2

/** Requests, and what holds their places. */
export interface HolderCounts {
  readonly byRoute: Map<number, number>
  /** By network. */
  readonly byAddress: Map<string, number>
}

/** A request's id has 16 bits for its slot. */
const SLOTS_MAX = 65_536

/** A handler that has not settled so long after it was given up does not settle at all, as far as can be told, milliseconds. */
export const DEAF_MS = 30_000

/** A request that a lane has been given and has not answered. */
export interface PlacedRequest {
  readonly exchange: Exchange
  /** When the lane was given it, milliseconds since the epoch. */
  readonly sentMs: number
  /** Its stream is open, so its handler began long ago. */
  readonly isStream: boolean
}

/** As it is reported. */
export const workOf = ({ exchange, sentMs }: PlacedRequest): WorkInFlight => ({
  kind: 'request',
  name: exchange.label,
  plugin: exchange.plugin,
  id: exchange.requestId,
  for_ms: steadyMs() - sentMs,
})

/**
 * The requests in flight in one lane. One whose answer has begun, or whose body is still coming, holds no place: it waits for its client, not for the lane. A request's id is `slot | generation << 16`: the answer to a request that was given up does not
 * reach the next request in its slot.
 */
export class RequestSlots {
  /** All requests, streams included. */
  count = 0
  /** Streams that are open, files included. They end with the lane, so a drain does not wait for them. */
  streams = 0
  /** Files that are being sent. A drain waits for them for a while. */
  files = 0
  /** Requests whose answers are not known to be quick. */
  slow = 0
  /** Requests whose bodies wait for their clients. */
  uploads = 0
  /** Places of requests. */
  readonly max: number
  #exchanges: (Exchange | null)[] = []
  #generations = new Uint16Array(0)
  #positions = new Float64Array(0)
  #sentMs = new Float64Array(0)
  #isStream = new Uint8Array(0)
  #isSlow = new Uint8Array(0)
  #isUpload = new Uint8Array(0)
  /** 1 where nobody waits for the answer any more: the slot is free when the handler has settled. */
  #isGivenUp = new Uint8Array(0)
  #givenUp = 0
  /** Whose they were, by slot. */
  readonly #left = new Map<number, { routeNumber: number; network: string }>()
  readonly #freeSlots: number[] = []

  /** @param max that may wait for their answers */
  constructor(max: number) {
    this.max = max
    this.#grow(max)
  }

  /** Requests that it can take. */
  get free(): number {
    return Math.min(this.max - this.held, SLOTS_MAX - this.count - this.#givenUp)
  }

  /** Places that are held. A body that has come takes one even where there is none. */
  get held(): number {
    return this.count + this.#givenUp - this.streams - this.uploads
  }

  /** An upload holds no place: there is room as long as there are slots. */
  hasRoomFor(exchange: Exchange): boolean {
    return exchange.isUploading ? this.count + this.#givenUp < SLOTS_MAX : this.free > 0
  }

  /** Returns the id of the next request, which takes its slot with `put`. There must be a free one. */
  nextId(): number {
    if (this.#freeSlots.length === 0) this.#grow(Math.min(2 * this.#exchanges.length, SLOTS_MAX))
    const slot = this.#freeSlots.at(-1)!
    return slot | (this.#generations[slot]! << 16)
  }

  /** @param id the next one @param position of its frame in the ring; -1 when the frame went another way */
  put(id: number, exchange: Exchange, position: number): void {
    const slot = id & 0xffff
    if (this.#freeSlots.pop() !== slot) throw new Error(`Request ${id} is not the next one`)
    this.#exchanges[slot] = exchange
    this.#positions[slot] = position
    this.#sentMs[slot] = steadyMs()
    this.count++
    if (exchange.isUploading) {
      this.#isUpload[slot] = 1
      this.uploads++
    }
    if (exchange.route?.pace.isQuick) return
    this.#isSlow[slot] = 1
    this.slow++
  }

  /** True when at least half of the places are held by handlers that were given up long ago, and have not settled. */
  isWornOut(nowMs: number): boolean {
    if (2 * this.#givenUp < this.max) return false
    let deaf = 0
    for (let slot = 0; slot < this.#exchanges.length; slot++)
      if (this.#isGivenUp[slot] === 1 && nowMs - this.#sentMs[slot]! >= DEAF_MS) deaf++
    return 2 * deaf >= this.max
  }

  get(id: number): Exchange | null {
    const slot = id & 0xffff
    return this.#generations[slot] === id >>> 16 ? (this.#exchanges[slot] ?? null) : null
  }

  /** Takes out a request that is answered. Null when it was given up before. */
  remove(id: number): Exchange | null {
    const slot = id & 0xffff
    const exchange = this.get(id)
    if (exchange !== null) this.#release(slot)
    else if (this.#isGivenUp[slot] === 1 && this.#generations[slot] === id >>> 16) this.#settle(slot)
    return exchange
  }

  /**
   * Nobody waits for the answer of a request any more. Its handler goes on, and keeps the slot: else clients that leave early would pile up work
   * without a limit. A stream has none to give up: it is free at once.
   */
  giveUp(id: number): Exchange | null {
    const slot = id & 0xffff
    const exchange = this.get(id)
    if (exchange === null) return null
    const isHandled = this.#isStream[slot] === 0
    this.#takeOut(slot)
    this.#isGivenUp[slot] = 1
    this.#givenUp++
    this.#left.set(slot, { routeNumber: exchange.route?.number ?? -1, network: exchange.network })
    this.#sentMs[slot] = steadyMs()
    if (!isHandled) this.#settle(slot)
    return exchange
  }

  /** Its body does not wait for the client any more: it holds a place from now on. */
  uploadOver(id: number): void {
    if (this.get(id) !== null) this.#noUpload(id & 0xffff)
  }

  #noUpload(slot: number): void {
    if (this.#isUpload[slot] === 0) return
    this.#isUpload[slot] = 0
    this.uploads--
  }

  /** Counts who holds the places. */
  countHolders({ byRoute, byAddress }: HolderCounts): void {
    const add = (route: number, network: string): void => {
      byRoute.set(route, (byRoute.get(route) ?? 0) + 1)
      if (network !== '') byAddress.set(network, (byAddress.get(network) ?? 0) + 1)
    }
    for (const { routeNumber, network } of this.#left.values()) add(routeNumber, network)
    for (let slot = 0; slot < this.#exchanges.length; slot++) {
      const exchange = this.#exchanges[slot]
      if (!exchange || this.#isStream[slot] !== 0 || this.#isUpload[slot] === 1) continue
      exchange.noteNetwork()
      add(exchange.route?.number ?? -1, exchange.network)
    }
  }

  /** Its answer has begun. Null when it was given up before, like the next. */
  beginStream(id: number): Exchange | null {
    const exchange = this.get(id)
    if (exchange === null) return null
    const slot = id & 0xffff
    this.#noUpload(slot)
    this.#isStream[slot] = STREAM
    this.streams++
    if (this.#isSlow[slot] === 1) {
      this.#isSlow[slot] = 0
      this.slow--
    }
    return exchange
  }

  beginFile(id: number): Exchange | null {
    const exchange = this.beginStream(id)
    if (exchange === null) return null
    this.#isStream[id & 0xffff] = FILE
    this.files++
    return exchange
  }

  /** Answers the requests whose time is up. */
  expire(nowMs: number): void {
    if (this.count === 0) return
    for (const exchange of this.#exchanges) {
      if (exchange === null) continue
      exchange.look(nowMs)
      if (exchange.deadlineMs !== 0 && exchange.deadlineMs <= nowMs) exchange.expire()
    }
  }

  /** Gives the requests more time. */
  postpone(byMs: number): void {
    if (this.count === 0) return
    for (const exchange of this.#exchanges)
      if (exchange !== null && exchange.deadlineMs !== 0) exchange.deadlineMs += byMs
  }

  /** Takes out requests whose frames can be taken back, `max` at most. They count as never sent. */
  takeBack(max: number, takeBack: (position: number) => Buffer | null): { body: Buffer; exchange: Exchange }[] {
    const taken: { body: Buffer; exchange: Exchange }[] = []
    for (let slot = 0; slot < this.#exchanges.length && taken.length < max; slot++) {
      const exchange = this.#exchanges[slot]
      const position = this.#positions[slot]!
      if (!exchange || position < 0) continue
      const body = takeBack(position)
      if (body === null) continue
      this.#release(slot)
      taken.push({ body, exchange })
    }
    return taken
  }

  /** All requests with their ids. */
  entries(): [id: number, exchange: Exchange][] {
    return this.#exchanges.flatMap((exchange, slot) =>
      exchange === null ? [] : [[slot | (this.#generations[slot]! << 16), exchange] as [number, Exchange]],
    )
  }

  /** All requests, the longest in flight first. */
  list(): PlacedRequest[] {
    const placed: PlacedRequest[] = []
    for (const [slot, exchange] of this.#exchanges.entries()) {
      if (exchange === null) continue
      placed.push({ exchange, sentMs: this.#sentMs[slot]!, isStream: this.#isStream[slot] !== 0 })
    }
    return placed.sort((a, b) => a.sentMs - b.sentMs)
  }

  /** As they are reported, streams left out. */
  works(): WorkInFlight[] {
    return this.list().flatMap((placed) => (placed.isStream ? [] : [workOf(placed)]))
  }

  /** Takes out all requests, as `list` gives them. */
  clear(): PlacedRequest[] {
    const left = this.list()
    this.#exchanges.fill(null)
    this.#isSlow.fill(0)
    this.#isUpload.fill(0)
    this.uploads = 0
    this.count = 0
    this.slow = 0
    this.streams = 0
    this.files = 0
    return left
  }

  /** @param slots all that there are to be */
  #grow(slots: number): void {
    const before = this.#exchanges.length
    this.#generations = grown(new Uint16Array(slots), this.#generations)
    this.#positions = grown(new Float64Array(slots), this.#positions)
    this.#sentMs = grown(new Float64Array(slots), this.#sentMs)
    this.#isStream = grown(new Uint8Array(slots), this.#isStream)
    this.#isSlow = grown(new Uint8Array(slots), this.#isSlow)
    this.#isUpload = grown(new Uint8Array(slots), this.#isUpload)
    this.#isGivenUp = grown(new Uint8Array(slots), this.#isGivenUp)
    this.#exchanges = [...this.#exchanges, ...new Array<null>(slots - before).fill(null)]
    for (let slot = slots - 1; slot >= before; slot--) this.#freeSlots.push(slot)
  }

  #release(slot: number): void {
    this.#takeOut(slot)
    this.#settle(slot)
  }

  #settle(slot: number): void {
    if (this.#isGivenUp[slot] === 1) {
      this.#givenUp--
      this.#left.delete(slot)
    }
    this.#isGivenUp[slot] = 0
    this.#generations[slot]!++
    this.#freeSlots.push(slot)
  }

  #takeOut(slot: number): void {
    this.#exchanges[slot] = null
    this.count--
    this.#noUpload(slot)
    if (this.#isSlow[slot] === 1) {
      this.#isSlow[slot] = 0
      this.slow--
    }
    if (this.#isStream[slot] === 0) return
    if (this.#isStream[slot] === FILE) this.files--
    this.#isStream[slot] = 0
    this.streams--
  }
}

function grown<Numbers extends { set(from: Numbers): void }>(to: Numbers, from: Numbers): Numbers {
  to.set(from)
  return to
}

/** A fast lane answers as many requests as it may hold within this, milliseconds: a request that waits for room there is begun soon. */
const FAST_MS = 300
/** Samples in a window. Enough that a thread that had to wait for the machine does not look slow. */
const WINDOW_SAMPLES = 5
const WINDOW_MS = 100
/** Time that one sample counts at most, milliseconds: a primary that was held up for longer did not read the answers either. */
const SAMPLE_MAX_MS = 50

export type DrainSpeed = 'unknown' | 'fast' | 'slow'

/** How fast a lane answers. A lane that is not full has few answers because it has few requests, which does not make it slow. */
export class DrainRate {
  /** By the last window that allowed a conclusion. */
  speed: DrainSpeed = 'unknown'
  readonly #fullLoad: number
  #answers = 0
  #samples = 0
  #fullSamples = 0
  #sampledMs = 0
  #elapsedMs = 0
  /** A request found no room since the last sample. */
  #wasFull = false

  /** @param fullLoad requests that the lane may hold */
  constructor(fullLoad: number) {
    this.#fullLoad = fullLoad
  }

  countAnswer(): void {
    this.#answers++
  }

  /** Asked when a request has found no room. Answers that are enough for a whole window are enough before its end. */
  speedWhenFull(): DrainSpeed {
    this.#wasFull = true
    if (this.#isFast(Math.max(WINDOW_MS, this.#elapsedMs))) this.speed = 'fast'
    return this.speed
  }

  /** Called every 20 ms, at each check of the supervisor. @param isFull the lane has no room now */
  sample(nowMs: number, isFull: boolean): void {
    this.#elapsedMs += Math.min(nowMs - this.#sampledMs, SAMPLE_MAX_MS)
    this.#sampledMs = nowMs
    if (isFull || this.#wasFull) this.#fullSamples++
    this.#wasFull = false
    if (++this.#samples < WINDOW_SAMPLES) return
    if (this.#isFast(this.#elapsedMs)) this.speed = 'fast'
    else if (this.#fullSamples === WINDOW_SAMPLES) this.speed = 'slow'
    this.#answers = 0
    this.#samples = 0
    this.#fullSamples = 0
    this.#elapsedMs = 0
  }

  #isFast(elapsedMs: number): boolean {
    return this.#answers * FAST_MS >= this.#fullLoad * elapsedMs
  }
}
