import type { FrameTarget } from '../../transport/frames/frame-target.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import { readRequest } from '../../transport/frames/request-frame.ts'
import type { RawBuffer } from '../../transport/memory/raw-buffer.ts'
import type { Exchange } from '../http/exchange.ts'
import { AdmissionQueue } from './admission-queue.ts'
import type { DrainRate } from './drain-rate.ts'
import type { Lane } from './lane.ts'

/** A lane that keeps its frames waiting is asked for them at most this often, milliseconds. */
const RESCUE_PAUSE_MS = 5
/** Whoever waits is looked at this often, milliseconds, beside when lanes answer: for deadlines, and for lanes that do not. */
const WAITING_LOOK_MS = 5
/** Of those who waited in vain this many are answered at once: all of them would keep the thread for a tenth of a second. */
const REFUSALS_PER_LOOK = 256

/**
 * Gives each request to the lane with the fewest in flight, of those that read what they get. What finds no room waits for it, where
 * that is worth while: a refusal costs as much as an answer, and brings the client's next request sooner than the lane's next answer.
 */
export class Dispatcher {
  readonly #room = new AdmissionQueue()
  #lanes: Lane[] = []
  #rescuedMs = 0
  #lookTimer: NodeJS.Timeout | undefined
  readonly #onFault: (error: unknown) => void

  /** @param onFault told of what is thrown while requests that waited are served: it costs one of them its answer */
  constructor(onFault: (error: unknown) => void) {
    this.#onFault = onFault
  }

  /** @param lanes those that take work; without any, nobody waits */
  setLanes(lanes: Lane[]): void {
    this.#lanes = lanes
    for (const lane of lanes) lane.onRoom = this.#serveWaiting
    this.#serveWaiting()
  }

  /** Requests that wait for room in a lane. */
  get waiting(): number {
    return this.#room.size
  }

  /** Gives a request to a lane, or lets it wait for room in one. False when it is to be refused. */
  send(frame: RequestFrame, exchange: Exchange, isHandshake = false): boolean {
    if (isHandshake && this.#giveHandshake(frame, exchange)) return true
    return (this.#room.size === 0 && this.#give(frame, exchange)) || this.#wait(frame, exchange)
  }

  /** To the lane with the fewest sockets: what it opens stays there. */
  #giveHandshake(frame: RequestFrame, exchange: Exchange): boolean {
    const nowMs = Date.now()
    let best: Lane | undefined
    for (const lane of this.#lanes) {
      if (!lane.responsive || lane.hasEnded || lane.hosts[frame.routeNumber] === 0) continue
      if (lane.freeRequests === 0 || !lane.isPrompt(nowMs)) continue
      if (best === undefined || socketLoad(lane) < socketLoad(best)) best = lane
    }
    const id = best?.sendRequest(frame, exchange) ?? -1
    if (id === -1) return false
    exchange.place(best!, id)
    return true
  }

  /** False when no lane has room. */
  #give(frame: RequestFrame, exchange: Exchange): boolean {
    const lanes = this.#lanes
    const { routeNumber } = frame
    const nowMs = Date.now()
    let best: Lane | undefined
    let late: Lane | undefined
    for (let n = 0; n < lanes.length; n++) {
      const lane = lanes[n]!
      if (!lane.responsive || lane.hasEnded || lane.hosts[routeNumber] === 0) continue
      if (!lane.isPrompt(nowMs)) late = lane
      else if (best === undefined || lane.requestsInFlight < best.requestsInFlight) best = lane
    }
    if (late !== undefined && best !== undefined && nowMs - this.#rescuedMs >= RESCUE_PAUSE_MS) {
      this.#rescuedMs = nowMs
      this.rescue(late)
    }
    // Better late in one that stands still than refused: `rescue` moves it as soon as there is room elsewhere. Where that is soon, it waits here.
    if (best === undefined || (best.freeRequests === 0 && best.drainRateWhenFull() !== 'quick')) {
      best = leastLoaded(lanes, routeNumber)
    }
    if (best === undefined) return false
    const id = best.sendRequest(frame, exchange)
    if (id === -1) return false
    exchange.place(best, id)
    return true
  }

  /** Only for a lane that works off what it has quickly: else it is better to know at once. */
  #wait(frame: RequestFrame, exchange: Exchange): boolean {
    if (this.#paceOf(frame.routeNumber) !== 'quick' || !this.#room.enter(frame, exchange)) return false
    this.#lookTimer ??= setTimeout(this.#look, WAITING_LOOK_MS)
    return true
  }

  /** How fast the fastest of the full lanes is that have the route. */
  #paceOf(routeNumber: number): DrainRate['verdict'] {
    let pace: DrainRate['verdict'] = 'slow'
    for (const lane of this.#lanes) {
      if (lane.hosts[routeNumber] === 0 || lane.hasEnded) continue
      const verdict = lane.drainRateWhenFull()
      if (verdict === 'quick') return verdict
      if (verdict === 'unknown') pace = verdict
    }
    return pace
  }

  /** In the order in which they came; refuses those whose lanes have turned out to be slow, or are gone. */
  readonly #serveWaiting = (): void => {
    if (this.#room.size === 0) return
    let refusals = 0
    for (const [ticket, { frame, exchange }] of this.#room) {
      let isSettled: boolean
      try {
        isSettled = this.#give(frame, exchange)
      } catch (error) {
        this.#fault(exchange, error)
        isSettled = true
      }
      if (isSettled) {
        this.#room.leave(ticket)
        continue
      }
      if (refusals === REFUSALS_PER_LOOK || this.#paceOf(frame.routeNumber) !== 'slow') return
      refusals++
      this.#room.leave(ticket)
      exchange.fail('HTTP_OVERLOADED')
    }
  }

  /** Thrown into a timer or the message loop, it would end the process. */
  #fault(exchange: Exchange, error: unknown): void {
    exchange.fail('HTTP_INTERNAL')
    this.#onFault(error)
  }

  readonly #look = (): void => {
    try {
      this.#room.expire(Date.now())
      this.#serveWaiting()
    } catch (error) {
      this.#onFault(error)
    }
    this.#lookTimer = this.#room.size === 0 ? undefined : setTimeout(this.#look, WAITING_LOOK_MS)
  }

  /**
   * Moves the requests that a lane has not begun to others that read what they get; into one whose thread has ended nothing comes back.
   * @returns how many
   */
  rescue(stuck: Lane): number {
    // What no other lane has room for is better late than refused: it was accepted.
    const nowMs = Date.now()
    let room = 0
    let mayWait = false
    for (const lane of this.#lanes) {
      if (lane === stuck || !lane.responsive || !lane.isPrompt(nowMs)) continue
      room += lane.freeRequests
      mayWait ||= lane.freeRequests === 0 && lane.drainRateWhenFull() === 'quick'
    }
    if (mayWait) room += this.#room.free
    if (room === 0) return 0
    const taken = stuck.takeBackRequests(room)
    for (const { body, exchange } of taken) {
      const aligned = new ArrayBuffer((body.byteLength + 7) & ~7)
      const bytes = Buffer.from(aligned) as RawBuffer
      bytes.set(body)
      const from: FrameTarget = { bytes, words: new Int32Array(aligned) }
      const frame = readRequest(from, 0)
      try {
        if (!this.#give(frame, exchange) && !this.#wait(frame, exchange)) exchange.fail('HTTP_OVERLOADED')
      } catch (error) {
        this.#fault(exchange, error)
      }
    }
    return taken.length
  }
}

const socketLoad = (lane: Lane): number => lane.sockets.size + lane.requestsInFlight

function leastLoaded(lanes: Lane[], routeNumber: number): Lane | undefined {
  let best: Lane | undefined
  for (const lane of lanes) {
    if (lane.hosts[routeNumber] === 0 || lane.hasEnded) continue
    if (best === undefined || lane.requestsInFlight < best.requestsInFlight) best = lane
  }
  return best
}
