import { Connection, type ConnectionEvents, type Target } from './connection.ts'
import type { ResponseReader } from './response-reader.ts'

/** What a caller reports. It is called during the load and must be cheap. */
export interface CallerEvents {
  answered(ok: boolean, latencyMs: number): void
  failed(): void
}

/** Closed loop: sends the next request when the last one was answered, until it is closed. */
export class Caller implements ConnectionEvents {
  readonly #connection: Connection
  readonly #requests: readonly Buffer[]
  readonly #events: CallerEvents
  #next: number
  #sentAtMs = 0

  constructor(target: Target, requests: readonly Buffer[], firstRequest: number, events: CallerEvents) {
    this.#requests = requests
    this.#next = firstRequest % requests.length
    this.#events = events
    this.#connection = new Connection(target, this)
  }

  close(): void {
    this.#connection.close()
  }

  opened(): void {
    this.#send()
  }

  answered(answer: ResponseReader): void {
    this.#events.answered(answer.status >= 200 && answer.status < 300, performance.now() - this.#sentAtMs)
    if (!this.#connection.isClosed) this.#send()
  }

  lost(): void {
    this.#events.failed()
  }

  #send(): void {
    const request = this.#requests[this.#next]!
    this.#next = this.#next + 1 === this.#requests.length ? 0 : this.#next + 1
    this.#sentAtMs = performance.now()
    this.#connection.send(request)
  }
}
