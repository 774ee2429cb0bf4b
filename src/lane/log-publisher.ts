import { HeddleError } from '../core/errors/catalogue.ts'
import { type EventLog, INSERT_MAX_ROWS, storeError } from '../runtime/event-log/event-log.ts'
import type { EventFrame } from '../transport/frames/event-frame.ts'
import type { Publisher } from './event-bus.ts'

/** Events that wait for their commit, at most. */
const WAITING_MAX = 16_384

interface Waiting {
  frame: EventFrame
  resolve: (id: string) => void
  reject: (error: Error) => void
}

/** Publishes events through the durable log: they are stored first, those of one turn of the loop together, and go to the hub after their commit. */
export class LogPublisher implements Publisher {
  readonly #log: EventLog
  readonly #deliver: (frame: EventFrame) => void
  #waiting: Waiting[] = []
  /** Events that are not committed yet. */
  #open = 0
  #isScheduled = false

  /** @param deliver takes an event that is committed */
  constructor(log: EventLog, deliver: (frame: EventFrame) => void) {
    this.#log = log
    this.#deliver = deliver
  }

  publish(frame: EventFrame): Promise<string> {
    this.#log.checkRoom()
    if (this.#open >= WAITING_MAX)
      throw new HeddleError('EVENT_BUS_FULL', 'Too many events of this lane wait for their commit')
    this.#open++
    return new Promise((resolve, reject) => {
      this.#waiting.push({ frame, resolve, reject })
      if (this.#isScheduled) return
      this.#isScheduled = true
      setImmediate(this.#store)
    })
  }

  readonly #store = (): void => {
    this.#isScheduled = false
    const waiting = this.#waiting
    this.#waiting = []
    for (let from = 0; from < waiting.length; from += INSERT_MAX_ROWS)
      void this.#storeTogether(waiting.slice(from, from + INSERT_MAX_ROWS))
  }

  async #storeTogether(events: readonly Waiting[]): Promise<void> {
    try {
      await this.#log.opened()
      await this.#log.insert(
        this.#log.database,
        events.map(({ frame }) => frame),
      )
    } catch (error) {
      for (const { reject } of events) reject(storeError(error))
      return
    } finally {
      this.#open -= events.length
    }
    for (const { frame, resolve } of events) {
      this.#deliver(frame)
      resolve(frame.id)
    }
  }
}
