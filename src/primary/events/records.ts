import type {
  DeadLetter,
  DeadLetterPage,
  DeliveryFailure,
  EventRecord,
  FailureListener,
} from '../../contracts/event-bus.ts'
import { causality } from '../../core/causality/context.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { Chance, Clock } from '../../core/schedule/clock.ts'
import { recordOf, TraceRing } from '../../runtime/events/trace-ring.ts'
import { added, tellAll } from '../../runtime/kernel/listeners.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { Delivery, FailedDelivery, HubEvent, SubscriberThread } from './consumer.ts'
import { DeadLetters, DroppedLetters, listed, Replays, type StoredLetter } from './dead-letters.ts'
import type { KeyPlace, ParkedKeys } from './key-order.ts'
import type { TraceFile } from './trace-file.ts'

export type RecordLog = (level: 'WARNING' | 'ERROR', message: string, fields?: Record<string, unknown>) => void

/** @param origin the thread that the record comes from: it has told its own listeners already */
export type RecordListener = (record: EventRecord, origin: SubscriberThread | null) => void

interface RecordsOptions {
  log: RecordLog
  clock: Clock
  chance: Chance
}

/** The records of the hub and their listeners: the trace of published events, and the dead letters. */
export class Records {
  readonly #log: RecordLog
  readonly #traces = new TraceRing()
  readonly #letters: DeadLetters<HubEvent>
  /** Letters that were dropped for new ones, here or in the store of the streams. */
  readonly droppedLetters: DroppedLetters
  readonly replays: Replays
  readonly #parked: ParkedKeys
  #file: TraceFile | null = null
  readonly #listeners: RecordListener[] = []
  readonly #failureListeners: FailureListener[] = []

  /**
   * @param parked keys that wait behind letters
   * @param maxDeadBytes what the dead letters take at most; a default when left out
   */
  constructor({ log, clock, chance }: RecordsOptions, parked: ParkedKeys, maxDeadBytes?: number) {
    this.#parked = parked
    this.#log = log
    this.replays = new Replays(clock)
    this.#letters = new DeadLetters(clock, chance, maxDeadBytes)
    this.droppedLetters = new DroppedLetters((message) => log('WARNING', message))
  }

  /** @param subscribers the plugins that it goes to */
  published(event: EventFrame, subscribers: readonly string[], origin: SubscriberThread | null): void {
    const trace = {
      id: event.id,
      parentId: event.parentId,
      event: event.event,
      emitter: event.emitter,
      subscribers,
      payloadKeys: event.payloadKeys,
      timestampMs: event.timestampMs,
      requestId: event.requestId,
      trace: event.trace,
    }
    if (this.#traces.push(trace)) this.#file?.add(trace)
    if (this.#listeners.length === 0) return
    const record = recordOf(trace)
    // A copy: a listener may remove itself while it is told, as a stream client does that is cut off.
    for (const listener of [...this.#listeners]) listener(record, origin)
  }

  /**
   * Listeners first, then the dead-letter store. What a listener publishes is caused by the failed event.
   * @returns undefined when the letter is stored already
   */
  failed(delivery: Delivery, failed: FailedDelivery): Promise<void> | undefined {
    const { trace, ...letter } = failed
    const { event, subscriber, error, attempts } = letter
    const failure: DeliveryFailure = { event: event.event, event_id: event.id, subscriber, error, attempts }
    causality.run({ eventId: event.id, requestId: event.requestId, trace, origin: null }, () =>
      tellAll(this.#failureListeners, failure, (thrown) =>
        this.#log('ERROR', `A failure listener threw; it is not reported again: ${messageOf(thrown)}`),
      ),
    )
    if (event.source !== null) return event.source.storeDeadLetter(delivery, failed)
    const { id, dropped } = this.#letters.add(letter)
    this.droppedLetters.add(dropped.length)
    if (letter.parks) this.#parked.park(letterPlace(letter), id)
    if (!this.replays.isEmpty) this.replays.ended(event, error, id)
    for (const old of dropped) if (old.parks) this.#parked.letterGone(letterPlace(old), old.id)
    return undefined
  }

  /** Begins with the history of the process before, and writes its own for the next one. */
  keepHistory(file: TraceFile): void {
    this.#traces.restore(file.read())
    this.#file = file
  }

  /** Resolves when the history is written. */
  async close(): Promise<void> {
    await this.#file?.close()
  }

  addListener(listener: RecordListener): () => void {
    return added(this.#listeners, listener)
  }

  addFailureListener(listener: FailureListener): () => void {
    return added(this.#failureListeners, listener)
  }

  history(): EventRecord[] {
    return this.#traces.records()
  }

  deadLetters(page: DeadLetterPage = {}): DeadLetter[] {
    if (page.replayed) return this.replays.list(page)
    return this.#letters.list(page).map((letter) => {
      const stored = letter.parked === true ? this.#letters.get(letter.id) : undefined
      return stored === undefined ? letter : { ...letter, ...this.#parked.shownOf(letterPlace(stored)) }
    })
  }

  deadLetter(id: string): StoredLetter<HubEvent> | undefined {
    return this.#letters.get(id)
  }

  /** What waits for the letter goes on. */
  deleteDeadLetter(id: string): boolean {
    const letter = this.#letters.get(id)
    this.#letters.delete(id)
    if (letter?.parks) this.#parked.letterGone(letterPlace(letter), id)
    return letter !== undefined
  }

  /** Takes a letter out to be replayed. What waits for it goes on waiting. @param event the object that is delivered */
  beginReplay(letter: StoredLetter<HubEvent>, event: HubEvent): void {
    this.#letters.delete(letter.id)
    this.replays.begun(listed(letter), event)
  }

  editDeadLetter(id: string, json: string, keys: string): boolean {
    return this.#letters.edit(id, Buffer.from(json).toString('latin1'), keys)
  }
}

/** The key that a letter holds up. */
export const letterPlace = ({
  event: { event, key },
  group,
}: Pick<StoredLetter<HubEvent>, 'event' | 'group'>): KeyPlace => ({
  event,
  group,
  key,
})
