import type { Reply } from '../endpoint/reply.ts'
import { type ReplySink, RequestServer } from '../endpoint/request-server.ts'
import type { FaultLog } from '../endpoint/run.ts'
import type { RequestFrame } from '../frames/request-frame.ts'
import type { Exchange, Worker } from './exchange.ts'

/** Requests in flight at plugins of the primary at most. */
export const LOCAL_MAX_IN_FLIGHT = 4096

/** Runs the routes of primary plugins, in the listener's own thread. */
export class LocalWorker implements ReplySink, Worker {
  readonly index = -1
  readonly server: RequestServer
  readonly #exchanges = new Map<number, Exchange>()
  #nextId = 0

  constructor(onFault: FaultLog) {
    this.server = new RequestServer(this, onFault)
  }

  /** Requests without an answer, and streams. */
  get inFlight(): number {
    return this.#exchanges.size
  }

  /** False when there is no room. */
  send(frame: RequestFrame, exchange: Exchange): boolean {
    if (this.#exchanges.size >= LOCAL_MAX_IN_FLIGHT) return false
    const id = this.#nextId++
    this.#exchanges.set(id, exchange)
    exchange.place(this, id)
    this.server.handle(id, frame)
    return true
  }

  cancelRequest(id: number): void {
    if (this.#exchanges.delete(id)) this.server.cancel(id)
  }

  /** Requests whose time is up. */
  expire(nowMs: number): void {
    for (const exchange of this.#exchanges.values()) {
      if (exchange.deadlineMs !== 0 && exchange.deadlineMs <= nowMs) exchange.expire()
    }
  }

  answer(id: number, reply: Reply): void {
    this.#take(id)?.reply(reply)
  }

  openStream(id: number, head: string): void {
    this.#exchanges.get(id)?.openStream(200, head)
  }

  streamData(id: number, chunk: string): boolean {
    this.#exchanges.get(id)?.streamData(Buffer.from(chunk))
    return true
  }

  endStream(id: number): void {
    this.#take(id)?.endStream()
  }

  clientAddress(id: number): string {
    return this.#exchanges.get(id)?.clientAddress() ?? ''
  }

  #take(id: number): Exchange | undefined {
    const exchange = this.#exchanges.get(id)
    this.#exchanges.delete(id)
    return exchange
  }
}
