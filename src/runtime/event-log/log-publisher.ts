import { causality } from '../../core/causality/context.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { type EventLog, type Insertion, runAll, storeError } from './event-log.ts'

/** Events that wait for their commit, at most. */
const WAITING_MAX = 16_384

interface Waiting {
  frame: EventFrame
  resolve: (id: string) => void
  reject: (error: Error) => void
}

/**
 * Publishes events of one thread through the durable log: they are stored first, many together, and handed on after their commit, in the order
 * in which they were published.
 *
 * On SQLite what is sent in one turn of the loop shares a commit. On a server one INSERT is under way, and the next gathers behind it: two on two
 * connections could be committed in the other order.
 */
export class LogPublisher {
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

  /** Resolves after the commit. @throws EVENT_BUS_FULL at once; rejects with EVENT_BUS_UNAVAILABLE */
  publish(frame: EventFrame): Promise<string> {
    this.#log.checkRoom(frame)
    if (!this.#log.isOnServer && causality.getStore()?.transaction?.isOpen) {
      throw new HeddleError(
        'EVENT_BUS_UNAVAILABLE',
        'event_bus.publish would wait for the transaction that it is called in: publish through its tx, and the event exists exactly when its rows do',
      )
    }
    if (this.#open >= WAITING_MAX)
      throw new HeddleError('EVENT_BUS_FULL', 'Too many events of this thread wait for their commit')
    this.#open++
    return new Promise((resolve, reject) => {
      this.#waiting.push({ frame, resolve, reject })
      if (this.#isScheduled) return
      this.#isScheduled = true
      setImmediate(this.#store)
    })
  }

  readonly #store = async (): Promise<void> => {
    if (this.#log.isOnServer) {
      while (this.#waiting.length > 0) await this.#storeTogether(this.#waiting.splice(0, this.#log.maxRows))
      this.#isScheduled = false
      return
    }
    this.#isScheduled = false
    const waiting = this.#waiting
    this.#waiting = []
    const { maxRows } = this.#log
    for (let from = 0; from < waiting.length; from += maxRows)
      void this.#storeTogether(waiting.slice(from, from + maxRows))
  }

  async #storeTogether(events: readonly Waiting[]): Promise<void> {
    let insertion: Insertion | null = null
    try {
      await this.#log.opened()
      insertion = this.#log.insertion(events.map(({ frame }) => frame))
      await runAll(this.#log.database, insertion)
    } catch (error) {
      if (insertion !== null) this.#log.ended(insertion)
      this.#log.memory.refused()
      for (const { reject } of events) reject(storeError(error))
      return
    } finally {
      this.#open -= events.length
    }
    for (const { frame, resolve } of events) {
      this.#deliver(frame)
      resolve(frame.id)
    }
    this.#log.ended(insertion)
  }
}
