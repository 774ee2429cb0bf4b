// Closed and open loops of requests over connections.

import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, type ConnectionEvents, type ResponseReader, type Target } from './client.ts'
import { LatencyHistogram, type Tally } from './tally.ts'

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

/** Gives requests in turn, from the first again after the last. */
export function requestsInTurn(requests: readonly Buffer[], first = 0): () => Buffer {
  let next = first % requests.length
  return () => {
    const request = requests[next]!
    next = next + 1 === requests.length ? 0 : next + 1
    return request
  }
}

/** Closed loop: each connection sends the next request when the last one was answered, until it is closed. */
export class Callers implements ConnectionEvents {
  readonly counts = { ok: 0, non2xx: 0, errors: 0 }
  readonly latency = new LatencyHistogram()
  readonly #connections = new Map<Connection, () => Buffer>()

  constructor(target: Target, requests: readonly Buffer[], connections: number) {
    for (let n = 0; n < connections; n++) {
      this.#connections.set(new Connection(target, this), requestsInTurn(requests, n))
    }
  }

  /** Forgets what was counted. */
  clear(): void {
    Object.assign(this.counts, { ok: 0, non2xx: 0, errors: 0 })
    this.latency.clear()
  }

  close(): void {
    for (const connection of this.#connections.keys()) connection.close()
  }

  opened(connection: Connection): void {
    const nowMs = performance.now()
    connection.send(this.#connections.get(connection)!(), nowMs, nowMs)
  }

  answered(connection: Connection, { status }: ResponseReader): void {
    if (status >= 200 && status < 300) this.counts.ok++
    else this.counts.non2xx++
    this.latency.record(performance.now() - connection.sentMs)
    if (!connection.isClosed) this.opened(connection)
  }

  lost(): void {
    this.counts.errors++
  }
}

/** Connections that are opened at a time: fewer than a server's queue of new ones holds. */
const OPENING = 100
const OPEN_TIMEOUT_MS = 10_000
const OPEN_LOOK_MS = 2

/** The connections and the schedule of one stream. Free connections are used in turn, so that none is idle until the server closes it. */
export class OpenLoop implements ConnectionEvents {
  readonly #target: Target
  readonly #nextRequest: () => Buffer
  readonly #lines: Connection[] = []
  readonly #free: Connection[] = []
  #arrivals: Arrivals | undefined
  #tally: Tally | undefined
  #isOver = false

  constructor(target: Target, requests: readonly Buffer[]) {
    this.#target = target
    this.#nextRequest = requestsInTurn(requests)
  }

  /** Opens so many connections, a few at a time. After a while it stops waiting: the figures show if some are missing. */
  async open(connections: number): Promise<void> {
    const deadlineMs = performance.now() + OPEN_TIMEOUT_MS
    while (this.#lines.length < connections && performance.now() < deadlineMs) {
      const opening = this.#lines.length - this.#free.length
      const more = Math.min(OPENING - opening, connections - this.#lines.length)
      for (let n = 0; n < more; n++) this.#lines.push(new Connection(this.#target, this))
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
      line.send(this.#nextRequest(), dueMs, nowMs)
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

  opened(line: Connection): void {
    this.#free.push(line)
    this.pump(performance.now())
  }

  answered(line: Connection, answer: ResponseReader): void {
    this.#tally!.answered(line.dueMs, line.sentMs, performance.now(), answer)
    this.opened(line)
  }

  lost(line: Connection): void {
    if (line.isBusy) this.#tally!.failed('lost', line.dueMs, performance.now())
    const at = this.#free.indexOf(line)
    if (at >= 0) this.#free.splice(at, 1)
  }
}
