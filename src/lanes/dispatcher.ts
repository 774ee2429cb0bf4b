import type { FrameTarget } from '../frames/frame-target.ts'
import type { RequestFrame } from '../frames/request-frame.ts'
import { readRequest } from '../frames/request-frame.ts'
import type { RawBuffer } from '../shm/raw-buffer.ts'
import type { Lane } from './lane.ts'
import type { Exchange } from './messages.ts'

/** A lane that keeps its frames waiting is asked for them at most this often, milliseconds. */
const RESCUE_PAUSE_MS = 5

/** Gives each request to the lane with the fewest in flight, of those that read what they get. */
export class Dispatcher {
  #lanes: Lane[] = []
  #rescuedMs = 0

  /** @param lanes those that take work */
  setLanes(lanes: Lane[]): void {
    this.#lanes = lanes
  }

  /** False when no lane has room. */
  send(frame: RequestFrame, exchange: Exchange): boolean {
    const lanes = this.#lanes
    const { routeNumber } = frame
    const nowMs = Date.now()
    let best: Lane | undefined
    let late: Lane | undefined
    for (let n = 0; n < lanes.length; n++) {
      const lane = lanes[n]!
      if (!lane.responsive || lane.hosts[routeNumber] === 0) continue
      if (!lane.isPrompt(nowMs)) late = lane
      else if (best === undefined || lane.requestsInFlight < best.requestsInFlight) best = lane
    }
    if (late !== undefined && best !== undefined && nowMs - this.#rescuedMs >= RESCUE_PAUSE_MS) {
      this.#rescuedMs = nowMs
      this.rescue(late)
    }
    // Better late in one that stands still than refused: `rescue` moves it as soon as there is room elsewhere.
    if (best === undefined || best.freeRequests === 0) best = leastLoaded(lanes, routeNumber)
    if (best === undefined) return false
    const id = best.sendRequest(frame, exchange)
    if (id === -1) return false
    exchange.place(best, id)
    return true
  }

  /** Moves the requests that a lane has not begun to others that read what they get. @returns how many */
  rescue(stuck: Lane): number {
    // What no other lane has room for is better late than refused: it was accepted.
    const nowMs = Date.now()
    let room = 0
    for (const lane of this.#lanes) {
      if (lane !== stuck && lane.responsive && lane.isPrompt(nowMs)) room += lane.freeRequests
    }
    if (room === 0) return 0
    const taken = stuck.takeBackRequests(room)
    for (const { body, exchange } of taken) {
      const aligned = new ArrayBuffer((body.byteLength + 7) & ~7)
      const bytes = Buffer.from(aligned) as RawBuffer
      bytes.set(body)
      const from: FrameTarget = { bytes, words: new Int32Array(aligned) }
      if (!this.send(readRequest(from, 0), exchange)) {
        exchange.fail('HTTP_OVERLOADED')
      }
    }
    return taken.length
  }
}

function leastLoaded(lanes: Lane[], routeNumber: number): Lane | undefined {
  let best: Lane | undefined
  for (const lane of lanes) {
    if (lane.hosts[routeNumber] === 0) continue
    if (best === undefined || lane.requestsInFlight < best.requestsInFlight) best = lane
  }
  return best
}
