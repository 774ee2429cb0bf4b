// Sends stored events to the message broker.
import type { LogLevel } from '../../contracts/logger.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { type Clock, pause } from '../../core/schedule/clock.ts'
import { type EventFrame, textOf } from '../../transport/frames/event-frame.ts'

/** Maximum number of events sent together. */
const BATCH_MAX = 128
/** Pause before events are sent again, milliseconds. */
const RETRY_MS = 250
/** Errors that pass: the event is sent again. An event refused for another reason would be refused again. */
const PASSES_BY_ITSELF = /^(EVENT_BUS_|KV_)/

export interface RelayOptions {
  /** Gives an event to the broker; its payload is text. Resolves when the broker has it. */
  send: (event: EventFrame) => Promise<void>
  clock: Clock
  report: (level: LogLevel, message: string) => void
}

export interface Relayed {
  /** Its payload is a string of bytes. */
  event: EventFrame
  /** Expiry, milliseconds since the epoch; 0: never. */
  expiresMs: number
  /** The broker has the event. */
  sent: () => void
  /** The broker will not take the event: it stays in the database. */
  refused: () => void
}

/** Sends stored events to the broker in order, a batch at a time, until it has them. Sends an event again, under the same id, if its outcome is unknown. */
export class Relay {
  readonly #options: RelayOptions
  readonly #waiting = new Fifo<Relayed>()
  #underWay = 0
  #isFailing = false
  #isClosed = false

  constructor(options: RelayOptions) {
    this.#options = options
  }

  get isIdle(): boolean {
    return this.#waiting.size + this.#underWay === 0
  }

  take(given: Relayed): void {
    this.#waiting.push(given)
    if (this.#underWay === 0) void this.#run()
  }

  close(): void {
    this.#isClosed = true
  }

  async #run(): Promise<void> {
    for (let batch = this.#nextBatch(); batch.length > 0; batch = this.#nextBatch()) {
      this.#underWay = batch.length
      const outcomes = await Promise.allSettled(batch.map((relayed) => this.#send(relayed)))
      const again = batch.filter((relayed, n) => !this.#isSettled(relayed, outcomes[n]!))
      this.#underWay = again.length
      if (again.length > 0) {
        for (const relayed of again.reverse()) this.#waiting.unshift(relayed)
        await pause(this.#options.clock, RETRY_MS)
      } else if (this.#isFailing) {
        this.#isFailing = false
        this.#options.report('INFO', 'The store takes the events of transactions again')
      }
      this.#underWay = 0
    }
  }

  #nextBatch(): Relayed[] {
    const batch: Relayed[] = []
    while (!this.#isClosed && batch.length < BATCH_MAX) {
      const next = this.#waiting.shift()
      if (next === undefined) break
      batch.push(next)
    }
    return batch
  }

  #send({ event, expiresMs }: Relayed): Promise<void> {
    const ttlMs = expiresMs === 0 ? 0 : expiresMs - event.timestampMs
    return this.#options.send({ ...event, payload: textOf(event), ttlMs })
  }

  /** False if it must be sent again. */
  #isSettled(relayed: Relayed, outcome: PromiseSettledResult<void>): boolean {
    if (outcome.status === 'fulfilled') {
      relayed.sent()
      return true
    }
    const { reason } = outcome
    const fixes = reason instanceof HeddleError && PASSES_BY_ITSELF.test(reason.code)
    if (!fixes) {
      this.#options.report('ERROR', `${relayed.event.event} stays in the event store: ${messageOf(reason)}`)
      relayed.refused()
      return true
    }
    if (!this.#isFailing) {
      this.#isFailing = true
      const message = `Redis does not take events of transactions, which stay in the database: ${messageOf(reason)}`
      this.#options.report('WARNING', message)
    }
    return false
  }
}
