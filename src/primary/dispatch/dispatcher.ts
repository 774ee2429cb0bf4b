// Which lane gets a request, and which requests wait for one.
import { exactMs, steadyMs } from '../../core/schedule/clock.ts'
import type { FrameBuffer } from '../../transport/frames/frames.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import { readRequest } from '../../transport/frames/request-frame.ts'
import { frameMemory } from '../../transport/memory/spsc-ring.ts'
import type { Exchange } from '../http/exchange.ts'
import { AdmissionQueue } from './admission-queue.ts'
import { HeldPlaces } from './held-places.ts'
import type { Lane } from './lane.ts'
import type { DrainSpeed } from './request-slots.ts'

/** Requests are taken back from a lane that leaves its frames unread at most this often, milliseconds. */
const RESCUE_PAUSE_MS = 5
/** The queue is served this often, milliseconds, beside when lanes answer: for lanes that do not answer. */
const QUEUE_CHECK_MS = 5
/** All deadlines are looked at this often, milliseconds: some thousands of requests lie far apart in the memory. */
const LOOK_MS = 50
/** A request whose route or client holds all the places it may waits this long at most, milliseconds. */
const WAITS_MAX_MS = 2000
/** What clients are told while nothing is overloaded: all lanes are gone, or one plugin has no lane and the others are served. */
const NO_LANE = 'No lane is up: a new one is starting'
const NO_LANE_YET = 'This part of the service waits for a lane of its own'
/** This many queued requests are refused at once: refusing all of them would keep the thread busy for a tenth of a second. */
const REFUSALS_PER_CHECK = 256

/**
 * Gives each request to the lane with the fewest in flight among those that read their frames; quick ones to the first lane for as long
 * as it can serve them alone, so that the others stay asleep. A request that finds no room waits for
 * it where that is worth while: a refusal costs as much as an answer, and the client's next request comes sooner than the lane's next
 * answer.
 */
export class Dispatcher {
  readonly heldPlaces: HeldPlaces
  readonly #queue = new AdmissionQueue()
  /** Requests whose route or client holds as many places as it may: nobody else waits behind them. */
  readonly #crowd = new AdmissionQueue()
  #lanes: Lane[] = []
  #rescuedMs = 0
  #checkTimer: NodeJS.Timeout | undefined
  /** When the deadlines were looked at. */
  #lookedMs = 0
  readonly #onFault: (error: unknown) => void
  readonly #isTakingTurns: boolean

  /**
   * @param onFault told of a fault while a queued request was served: it costs that request its answer
   * @param isTakingTurns the next of idle lanes instead of the first, so that one person sees what lanes do not share
   * @param heldPlaces bounds of one route and one client
   */
  constructor(onFault: (error: unknown) => void, isTakingTurns = false, heldPlaces = new HeldPlaces()) {
    this.heldPlaces = heldPlaces
    this.#onFault = onFault
    this.#isTakingTurns = isTakingTurns
  }

  /** @param lanes those that take work; without any, no request waits */
  setLanes(lanes: Lane[]): void {
    this.#lanes = [...lanes]
    for (const lane of lanes) lane.onRoom = this.#serveQueue
    this.#serveQueue()
  }

  /** Why no lane can take a request; null while one can. A lane that is full and fast has room in a moment. */
  get fault(): string | null {
    const isHeld = ({ requests, drainRate }: Lane): boolean => requests.free <= 0 && drainRate.speed !== 'fast'
    if (this.#lanes.length === 0 || !this.#lanes.every(isHeld)) return null
    return 'all places of all lanes are held (LANE_MAX_INFLIGHT)'
  }

  /** Places of requests that are held in all lanes. */
  get held(): number {
    return this.#lanes.reduce((sum, { requests }) => sum + requests.held, 0)
  }

  /** Requests that wait for room in a lane. */
  get waiting(): number {
    return this.#queue.size + this.#crowd.size
  }

  /** Gives a request to a lane, or lets it wait for room in one. False when it is to be refused. */
  send(frame: RequestFrame, exchange: Exchange, isLasting = false): boolean {
    const { heldPlaces } = this
    // It waits where waiting is worth while, as if there were no room.
    if (heldPlaces.isFullFor(exchange, this.#lanes))
      return this.#enqueue(frame, exchange, this.#crowd) || heldPlaces.refuse(exchange)
    if (isLasting && this.#giveLasting(frame, exchange)) return true
    return (
      // Who holds few places does not wait behind a crowd of one client.
      ((this.#queue.size === 0 || heldPlaces.isCrowded) && this.#give(frame, exchange)) ||
      this.#enqueue(frame, exchange)
    )
  }

  /** Why no lane takes a request of a route; undefined where lanes serve it and are full. */
  refusalOf(routeNumber: number): string | undefined {
    if (!this.#lanes.some(({ state }) => state === 'ready')) return NO_LANE
    return leastLoaded(this.#lanes, routeNumber) === undefined ? NO_LANE_YET : undefined
  }

  /** To the lane with the fewest sockets and streams: they stay where they were opened. */
  #giveLasting(frame: RequestFrame, exchange: Exchange): boolean {
    const nowMs = exactMs()
    let best: Lane | undefined
    for (const lane of this.#lanes) {
      if (!lane.responsive || lane.state !== 'ready' || lane.servesRoute[frame.routeNumber] === 0) continue
      if (!lane.requests.hasRoomFor(exchange) || !lane.isPrompt(nowMs)) continue
      if (best === undefined || lastingLoad(lane) < lastingLoad(best)) best = lane
    }
    return best !== undefined && assign(best, best.sendRequest(frame, exchange), exchange)
  }

  /** False when no lane has room. */
  #give(frame: RequestFrame, exchange: Exchange): boolean {
    const lane = this.#choose(frame.routeNumber, exchange)
    return lane !== undefined && assign(lane, lane.sendRequest(frame, exchange), exchange)
  }

  /** The same for a request that has waited. */
  #giveWaiting(queue: AdmissionQueue, id: number, exchange: Exchange): boolean {
    const lane = this.#choose(queue.routeNumberOf(id), exchange)
    return lane !== undefined && assign(lane, lane.sendWaiting(queue, id, exchange), exchange)
  }

  /** The lane that is to have it, whether it has room or not. */
  #choose(routeNumber: number, exchange: Exchange): Lane | undefined {
    const lanes = this.#lanes
    if (this.#isTakingTurns && lanes.length > 1) lanes.push(lanes.shift()!)
    const nowMs = exactMs()
    const isQuick = exchange.route?.pace.isQuick === true
    let best: Lane | undefined
    let late: Lane | undefined
    for (let n = 0; n < lanes.length; n++) {
      const lane = lanes[n]!
      if (!lane.responsive || lane.state !== 'ready' || lane.servesRoute[routeNumber] === 0) continue
      if (!lane.isPrompt(nowMs)) late = lane
      else if (best === undefined) best = lane
      else if (lane.requestsInFlight < best.requestsInFlight && !(isQuick && best.canServeAlone(nowMs))) best = lane
    }
    if (late !== undefined && best !== undefined && nowMs - this.#rescuedMs >= RESCUE_PAUSE_MS) {
      this.#rescuedMs = nowMs
      this.rescue(late)
    }
    // A lane that stands still is better than a refusal: `rescue` moves the request as soon as there is room elsewhere. Where a full lane
    // is fast, the request waits for it here.
    if (best === undefined || (!best.requests.hasRoomFor(exchange) && best.drainRate.speedWhenFull() !== 'fast')) {
      best = leastLoaded(lanes, routeNumber)
    }
    return best
  }

  /** Queues a request for a fast lane. For all other lanes a refusal now is better than one later. */
  #enqueue(frame: RequestFrame, exchange: Exchange, queue = this.#queue): boolean {
    if (this.#fastestSpeed(frame.routeNumber) !== 'fast' || !queue.tryAdd(frame, exchange)) return false
    this.#checkTimer ??= setTimeout(this.#check, QUEUE_CHECK_MS)
    return true
  }

  /** Speed of the fastest lane that serves the route, all of them being full. */
  #fastestSpeed(routeNumber: number): DrainSpeed {
    let fastest: DrainSpeed = 'slow'
    for (const lane of this.#lanes) {
      if (!mayHave(lane, routeNumber)) continue
      const speed = lane.drainRate.speedWhenFull()
      if (speed === 'fast') return speed
      if (speed === 'unknown') fastest = speed
    }
    return fastest
  }

  /** Serves the queue in its order. Refuses requests whose lanes have turned out to be slow, or are gone. */
  readonly #serveQueue = (): void => {
    for (const queue of [this.#queue, this.#crowd]) {
      if (queue.size === 0) continue
      const longestMs = queue === this.#crowd ? steadyMs() - WAITS_MAX_MS : 0
      let refusals = 0
      this.#serve(queue, (id, isFull) => {
        // Nobody waits behind a request of a client that has filled its part of the places meanwhile.
        const isOver = queue === this.#crowd ? queue.sinceMsOf(id) <= longestMs : isFull
        const isSlow = isOver || this.#fastestSpeed(queue.routeNumberOf(id)) === 'slow'
        if (!isSlow || refusals === REFUSALS_PER_CHECK) return 'all wait'
        refusals++
        return 'refused'
      })
    }
  }

  /** @param fateOf asked of each request that no lane takes now; `isFull`: because its route or client has no place left */
  #serve(queue: AdmissionQueue, fateOf: (id: number, isFull: boolean) => 'all wait' | 'refused'): void {
    for (let id = queue.first; id !== -1; id = queue.after(id)) {
      const exchange = queue.exchangeOf(id)
      try {
        const isFull = this.heldPlaces.isFullFor(exchange, this.#lanes)
        const fate = !isFull && this.#giveWaiting(queue, id, exchange) ? 'given' : fateOf(id, isFull)
        if (fate === 'all wait') return
        if (fate === 'refused') exchange.fail('HTTP_OVERLOADED', this.refusalOf(queue.routeNumberOf(id)))
      } catch (error) {
        this.#fail(exchange, error)
      }
      queue.remove(id)
    }
  }

  /** Thrown into a timer or the message loop, the error would end the process. */
  #fail(exchange: Exchange, error: unknown): void {
    exchange.fail('HTTP_INTERNAL')
    this.#onFault(error)
  }

  readonly #check = (): void => {
    try {
      const nowMs = steadyMs()
      if (nowMs - this.#lookedMs >= LOOK_MS) {
        this.#lookedMs = nowMs
        this.#queue.expire(nowMs)
        this.#crowd.expire(nowMs)
      }
      this.#serveQueue()
    } catch (error) {
      this.#onFault(error)
    }
    this.#checkTimer = this.waiting === 0 ? undefined : setTimeout(this.#check, QUEUE_CHECK_MS)
  }

  /**
   * Moves requests that a lane has not begun to lanes that read their frames. Nothing goes back into a lane whose thread has ended.
   * @returns how many
   */
  rescue(stuck: Lane): number {
    const freeRequests = this.#freeBeside(stuck)
    if (freeRequests === 0) return 0
    const taken = stuck.takeBackRequests(freeRequests)
    for (const { body, exchange } of taken) {
      const frame = readRequest(bufferOf(body), 0)
      try {
        if (!this.#give(frame, exchange) && !this.#enqueue(frame, exchange))
          exchange.fail('HTTP_OVERLOADED', this.refusalOf(frame.routeNumber))
      } catch (error) {
        this.#fail(exchange, error)
      }
    }
    return taken.length
  }

  /** Requests that the other lanes have room for, or the queue. What finds no room stays: it was accepted, and late is better than refused. */
  #freeBeside(stuck: Lane): number {
    const nowMs = exactMs()
    let free = 0
    let mayQueue = false
    for (const lane of this.#lanes) {
      if (lane === stuck || !lane.responsive || !lane.isPrompt(nowMs)) continue
      free += Math.max(0, lane.requests.free)
      mayQueue ||= lane.requests.free <= 0 && lane.drainRate.speedWhenFull() === 'fast'
    }
    return mayQueue ? free + this.#queue.free : free
  }
}

/** @param id -1 when the lane had no room: false then */
function assign(lane: Lane, id: number, exchange: Exchange): boolean {
  if (id === -1) return false
  exchange.assignTo(lane, id)
  return true
}

/** A frame that was taken back, where `readRequest` can read it: aligned to its words. */
function bufferOf(body: Buffer): FrameBuffer {
  const aligned = frameMemory(new ArrayBuffer((body.byteLength + 7) & ~7))
  aligned.bytes.set(body)
  return aligned
}

const lastingLoad = (lane: Lane): number => lane.sockets.size + lane.requests.streams + lane.requestsInFlight

const mayHave = ({ servesRoute, state }: Lane, routeNumber: number): boolean =>
  servesRoute[routeNumber] === 1 && state === 'ready'

function leastLoaded(lanes: Lane[], routeNumber: number): Lane | undefined {
  let best: Lane | undefined
  for (const lane of lanes) {
    if (!mayHave(lane, routeNumber)) continue
    if (best === undefined || lane.requestsInFlight < best.requestsInFlight) best = lane
  }
  return best
}
