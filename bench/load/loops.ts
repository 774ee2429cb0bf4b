// Closed and open loops of requests over connections.

import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, type ConnectionEvents, type ResponseReader, type Target } from './client.ts'
import type { Tally } from './tally.ts'

const MS_PER_SEC = 1000

/** The times at which requests of a fixed rate are due, evenly spaced. */
export class Arrivals {
  readonly #startMs: number
  readonly #intervalMs: number
  readonly #endMs: number
  #taken = 0

  /** The first request is due at `startMs`, the last one before `endMs`. */
  constructor(perSec: number, startMs: number, endMs: number) {
    this.#intervalMs = MS_PER_SEC / perSec
    this.#startMs = startMs
    this.#endMs = endMs
  }

  /** When the next request is due; infinite after the last. */
  get nextMs(): number {
    const dueMs = this.#startMs + this.#taken * this.#intervalMs
    return dueMs < this.#endMs ? dueMs : Number.POSITIVE_INFINITY
  }

  /** Takes the next request. @returns when it was due */
  take(): number {
    const dueMs = this.nextMs
    this.#taken++
    return dueMs
  }
}

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

/** Connections that are opened at a time: fewer than a server's queue of new ones holds. */
const OPENING = 100
const OPEN_TIMEOUT_MS = 10_000
const OPEN_LOOK_MS = 2

/** The connections and the schedule of one stream. Free connections are used in turn, so that none is idle until the server closes it. */
export class OpenLoop {
  readonly #target: Target
  readonly #requests: readonly Buffer[]
  readonly #lines: Line[] = []
  readonly #free: Line[] = []
  #arrivals: Arrivals | undefined
  #tally: Tally | undefined
  #next = 0
  #isOver = false

  constructor(target: Target, requests: readonly Buffer[]) {
    this.#target = target
    this.#requests = requests
  }

  /** Opens so many connections, a few at a time. After a while it stops waiting: the figures show if some are missing. */
  async open(connections: number): Promise<void> {
    const deadlineMs = performance.now() + OPEN_TIMEOUT_MS
    while (this.#lines.length < connections && performance.now() < deadlineMs) {
      const opening = this.#lines.length - this.#free.length
      const more = Math.min(OPENING - opening, connections - this.#lines.length)
      for (let n = 0; n < more; n++) this.#lines.push(new Line(this.#target, this))
      await sleep(OPEN_LOOK_MS)
    }
    while (this.#free.length < connections && performance.now() < deadlineMs) await sleep(OPEN_LOOK_MS)
  }

  /** Follows a schedule from now on, and drops the rest of the previous one. */
  start(arrivals: Arrivals, tally: Tally): void {
    this.#arrivals = arrivals
    this.#tally = tally
  }

  /** Sends the requests that are due while there are free connections. */
  pump(nowMs: number): void {
    const arrivals = this.#arrivals
    if (arrivals === undefined || this.#isOver) return
    while (arrivals.nextMs <= nowMs) {
      const line = this.#free.shift()
      if (line === undefined) return
      const dueMs = arrivals.take()
      this.#tally!.sent(dueMs, nowMs)
      line.send(this.#requests[this.#next]!, dueMs, nowMs)
      this.#next = this.#next + 1 === this.#requests.length ? 0 : this.#next + 1
    }
  }

  /** Sends no more requests. */
  finish(): void {
    this.pump(performance.now())
    this.#isOver = true
  }

  get isQuiet(): boolean {
    return this.#lines.every((line) => !line.isBusy)
  }

  /** Closes all connections; requests without an answer are lost. May be called twice. */
  close(): void {
    const nowMs = performance.now()
    for (const line of this.#lines.splice(0)) {
      if (line.isBusy) this.#tally?.failed('unanswered', line.dueMs, nowMs)
      line.close()
    }
    while (this.#arrivals !== undefined && this.#arrivals.nextMs <= nowMs) {
      this.#tally!.failed('unsent', this.#arrivals.take(), nowMs)
    }
  }

  released(line: Line): void {
    this.#free.push(line)
    this.pump(performance.now())
  }

  answered(line: Line, answer: ResponseReader): void {
    this.#tally!.answered(line.dueMs, line.sentMs, performance.now(), answer)
    this.released(line)
  }

  lost(line: Line): void {
    if (line.isBusy) this.#tally!.failed('lost', line.dueMs, performance.now())
    const at = this.#free.indexOf(line)
    if (at >= 0) this.#free.splice(at, 1)
  }
}

/** One connection and the request on it. */
class Line implements ConnectionEvents {
  dueMs = 0
  sentMs = 0
  isBusy = false
  readonly #loop: OpenLoop
  readonly #connection: Connection

  constructor(target: Target, loop: OpenLoop) {
    this.#loop = loop
    this.#connection = new Connection(target, this)
  }

  send(request: Buffer, dueMs: number, nowMs: number): void {
    this.dueMs = dueMs
    this.sentMs = nowMs
    this.isBusy = true
    this.#connection.send(request)
  }

  close(): void {
    this.#connection.close()
  }

  opened(): void {
    this.#loop.released(this)
  }

  answered(answer: ResponseReader): void {
    this.isBusy = false
    this.#loop.answered(this, answer)
  }

  lost(): void {
    this.#loop.lost(this)
    this.isBusy = false
  }
}
