import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { Consumer } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { ChangeWriter } from './change-writer.ts'
import type { FreeEvents } from './free-events.ts'
import type { StoredRow } from './log-reader.ts'
import type { PositionQueue } from './position-queue.ts'
import type { StoredEvents } from './stored-events.ts'

/** How often it is looked whether there is too much here, milliseconds. */
const LOOK_MS = 250
/** A process keeps of each subscriber what it does in so many looks, and this many events. */
const KEPT_LOOKS = 2
const KEPT_EVENTS = 4
/** While a subscriber has fewer waiting, it gets more of what others have left. */
const HUNGRY_BELOW = 4
/** Events that are taken together: few at first, and twice as many each time that they are done soon. */
const TAKE_MIN = 8
const TAKE_MAX = 128
const SOON_MS = 50
/** Positions that are changed in one statement. */
const PAGE = 1000

/** In place of the names of all events. */
const ANY = '*'

interface SharedWorkParts {
  hub: Hub
  events: StoredEvents
  writer: ChangeWriter
  free: FreeEvents
  /** Positions of events that the hub had no room for. */
  passed: PositionQueue
  /** A broker gets the events: it takes them all. */
  isRelayed: boolean
}

/** Leaves events without keys to other processes when they would wait too long here, and takes what others have left while there is room. */
export class SharedWork {
  readonly #parts: SharedWorkParts
  /** What each subscriber had done at the last look. */
  #ended = new Map<Consumer, number>()
  #lookedMs = 0
  #taken = TAKE_MIN
  /** Events of which there were none; some may have come since. */
  readonly #absent = new Set<string>()
  #tookMs = 0

  constructor(parts: SharedWorkParts) {
    this.#parts = parts
  }

  /** Others may have left something. */
  expect(): void {
    this.#absent.clear()
  }

  /** Events of which this process could do more now, and of which there may be some. Those of a paused subscriber are none. */
  get #hungry(): string[] {
    if (this.#parts.isRelayed) return this.#absent.has(ANY) ? [] : [ANY]
    const names = new Set<string>()
    for (const { event } of this.#parts.hub.workloads()) names.add(event)
    for (const { event, isPaused, instances, queue } of this.#parts.hub.workloads())
      if (isPaused || instances.length === 0 || queue.waiting.size >= HUNGRY_BELOW) names.delete(event)
    for (const event of this.#absent) names.delete(event)
    return [...names]
  }

  /** True while it could do more. */
  get isHungry(): boolean {
    return this.#hungry.length > 0
  }

  /** Takes some of what others have left; none when there is nothing for it at present. */
  async take(): Promise<StoredRow[]> {
    const wasSoon = steadyMs() - this.#tookMs < SOON_MS
    this.#taken = wasSoon ? Math.min(TAKE_MAX, this.#taken * 2) : TAKE_MIN
    const names = this.#hungry
    for (const name of names) this.#absent.add(name)
    const rows = await this.#parts.free.takeUnkeyed(this.#taken, names.includes(ANY) ? null : names)
    if (rows.length > 0) for (const name of names) this.#absent.delete(name)
    this.#tookMs = steadyMs()
    return rows
  }

  /** Leaves what would wait too long to the others. */
  async leave(): Promise<void> {
    if (steadyMs() - this.#lookedMs < LOOK_MS) return
    this.#lookedMs = steadyMs()
    const { hub, events, writer, free } = this.#parts
    const excess = this.#excess()
    let isLeft = await this.#leavePassed()
    if (excess.size > 0) {
      const given = events.giveBack(
        ({ seq, isSharable }) => isSharable && excess.has(seq),
        (isWanted) => hub.takeBack(isWanted),
      )
      if (given.length > 0) {
        await writer.written()
        await free.free(given).catch((error: unknown) => {
          // They are read from the log when they are still this process's.
          for (const seq of given) this.#parts.passed.push(seq)
          throw error
        })
        isLeft = true
      }
    }
    if (isLeft) free.tell('events')
  }

  /** Positions of the events that wait behind as many as their subscriber does in some time. */
  #excess(): Set<number> {
    const excess = new Set<number>()
    const ended = new Map<Consumer, number>()
    for (const consumer of this.#parts.hub.workloads()) {
      ended.set(consumer, consumer.ended)
      const { waiting } = consumer.queue
      const done = consumer.ended - (this.#ended.get(consumer) ?? consumer.ended)
      let kept = KEPT_EVENTS + done * KEPT_LOOKS
      if (waiting.size <= kept || !this.#ended.has(consumer)) continue
      for (const { event } of waiting) if (kept-- <= 0 && event.seq > 0) excess.add(event.seq)
    }
    this.#ended = ended
    return excess
  }

  /** What the hub had no room for is not needed here. */
  async #leavePassed(): Promise<boolean> {
    const { passed, free } = this.#parts
    if (passed.size === 0) return false
    const positions = passed.list()
    const left = new Set<number>()
    for (let from = 0; from < positions.length; from += PAGE)
      for (const seq of await free.freeUnkeyed(positions.slice(from, from + PAGE))) left.add(seq)
    passed.remove(left)
    return left.size > 0
  }
}
