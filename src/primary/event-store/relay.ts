// Sends stored events to the message broker.
import type { LogLevel } from '../../contracts/logger.ts'
import { messageOf } from '../../core/errors/description.ts'
import { type Clock, pause } from '../../core/schedule/clock.ts'
import { type EventFrame, textOf } from '../../transport/frames/event-frame.ts'

/** Maximum number of events sent together. */
const BATCH_MAX = 128
/** Pause before the events of a name are sent again, milliseconds. */
const RETRY_MS = 250

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
}

/** The events of one name, which is one stream. */
interface Queue {
  readonly waiting: Relayed[]
  /** By the steady clock: they are not sent before. 0: none was refused since the last that was sent. */
  restsUntilMs: number
}

/**
 * Sends stored events to the broker, those of one name in order, until it has them. Sends an event again, under the same id, if its outcome is unknown.
 * A name that the broker refuses does not hold up others.
 */
export class Relay {
  readonly #options: RelayOptions
  readonly #queues = new Map<string, Queue>()
  /** Reasons of refusals that the log has. */
  readonly #told = new Set<string>()
  /** idle ◄─► sending; each ──► closed */
  #state: 'idle' | 'sending' | 'closed' = 'idle'

  constructor(options: RelayOptions) {
    this.#options = options
  }

  get isIdle(): boolean {
    return this.#queues.size === 0
  }

  take(given: Relayed): void {
    const { event } = given.event
    const queue = this.#queues.get(event)
    if (queue === undefined) this.#queues.set(event, { waiting: [given], restsUntilMs: 0 })
    else queue.waiting.push(given)
    if (this.#state === 'idle') void this.#run()
  }

  close(): void {
    this.#state = 'closed'
  }

  async #run(): Promise<void> {
    const { clock } = this.#options
    this.#state = 'sending'
    while (this.#state === 'sending' && this.#queues.size > 0) {
      const batch = this.#nextBatch()
      if (batch.length === 0) await pause(clock, RETRY_MS)
      const outcomes = await Promise.allSettled(batch.map((relayed) => this.#send(relayed)))
      for (const [n, outcome] of outcomes.entries()) this.#settle(batch[n]!, outcome)
    }
    if (this.#state === 'sending') this.#state = 'idle'
  }

  #nextBatch(): Relayed[] {
    const nowMs = this.#options.clock.steadyMs()
    const batch: Relayed[] = []
    for (const [event, queue] of [...this.#queues]) {
      if (batch.length >= BATCH_MAX) break
      if (queue.restsUntilMs > nowMs) continue
      batch.push(...queue.waiting.slice(0, BATCH_MAX - batch.length))
      // The next batch begins with other names.
      this.#queues.delete(event)
      this.#queues.set(event, queue)
    }
    return batch
  }

  #send({ event, expiresMs }: Relayed): Promise<void> {
    const ttlMs = expiresMs === 0 ? 0 : expiresMs - event.timestampMs
    return this.#options.send({ ...event, payload: textOf(event), ttlMs })
  }

  #settle(relayed: Relayed, outcome: PromiseSettledResult<void>): void {
    const { event } = relayed.event
    const queue = this.#queues.get(event)!
    if (outcome.status === 'rejected') {
      queue.restsUntilMs = this.#options.clock.steadyMs() + RETRY_MS
      return this.#tell(event, messageOf(outcome.reason))
    }
    relayed.sent()
    queue.waiting.splice(queue.waiting.indexOf(relayed), 1)
    queue.restsUntilMs = 0
    if (queue.waiting.length === 0) this.#queues.delete(event)
    if (this.#told.size === 0 || [...this.#queues.values()].some(({ restsUntilMs }) => restsUntilMs > 0)) return
    this.#told.clear()
    this.#options.report('INFO', 'Redis takes the events of transactions again')
  }

  /** Each reason once, until all names are taken again. */
  #tell(event: string, reason: string): void {
    if (this.#told.has(reason)) return
    this.#told.add(reason)
    this.#options.report(
      'WARNING',
      `Redis does not take ${event} of a transaction, which stays in the database: ${reason}`,
    )
  }
}
