import { eventOf, streamOf } from '../../runtime/streams/keys.ts'
import { compareEntryIds } from './entry-id.ts'

/** Before a thread that could not be woken is looked for again, milliseconds. */
const RETRY_MS = 50

/** A thread that reads. */
export interface Reader {
  /** False while its loop stands still: others are woken. */
  readonly isResponsive: boolean
  wake(event: string): void
}

/** One group of one event, and the threads of this process that read as it. */
interface WatchedGroup {
  readonly readers: Set<Reader>
  /** All entries up to this one have been given to somebody. */
  upTo: string
  /** Nobody could be woken for it when it was due. */
  isOwed: boolean
}

interface WatchedTopic {
  readonly event: string
  readonly groups: Map<string, WatchedGroup>
  /** Threads that are reading now. */
  readonly awake: Set<Reader>
  /** Threads that have no room: they read on by themselves when they have. */
  readonly full: Set<Reader>
  /** Whose turn it is. */
  turn: number
}

/**
 * Which threads of this process read just now, which sleep, and up to which entry each group has been read: whoever has to be woken
 * for a group is found here. One thread per group is enough; who is awake reads on by itself until there is nothing left.
 */
export class ReaderWakeups {
  readonly #onChange: () => void
  readonly #topics = new Map<string, WatchedTopic>()
  #retryTimer: NodeJS.Timeout | undefined
  #isClosed = false

  /** @param onChange told when other streams are to be watched, or from another entry on */
  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  /** Whoever could not be woken at once is woken no more. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retryTimer)
  }

  /** A thread reads as this group from now on; it is woken for what may be there already. */
  add(reader: Reader, event: string, group: string): void {
    let topic = this.#topics.get(event)
    if (topic === undefined) {
      topic = { event, groups: new Map(), awake: new Set(), full: new Set(), turn: 0 }
      this.#topics.set(event, topic)
    }
    let watched = topic.groups.get(group)
    if (watched === undefined) {
      watched = { readers: new Set(), upTo: '0-0', isOwed: false }
      topic.groups.set(group, watched)
    }
    watched.readers.add(reader)
    watched.isOwed = true
    this.#retrySoon(0)
  }

  remove(reader: Reader, event: string, group: string): void {
    const topic = this.#topics.get(event)
    topic?.groups.get(group)?.readers.delete(reader)
    this.#tidy(topic)
  }

  /** It has read all up to this entry, and sleeps. */
  idle(reader: Reader, event: string, upTo: string): void {
    const topic = this.#topics.get(event)
    if (topic === undefined || !topic.awake.delete(reader)) return
    for (const watched of topic.groups.values()) {
      if (watched.readers.has(reader) && compareEntryIds(watched.upTo, upTo) < 0) watched.upTo = upTo
    }
    this.#onChange()
  }

  /** It has more than it can read at a time: one that sleeps helps out. */
  more(reader: Reader, event: string): void {
    const topic = this.#topics.get(event)
    if (topic === undefined) return
    for (const { readers } of topic.groups.values()) {
      if (!readers.has(reader)) continue
      const helper = this.#next(topic, readers)
      if (helper === null) continue
      this.#rouse(topic, helper)
      return
    }
  }

  /** It has its hands full: what it was woken for others read meanwhile. Or it has room again, and reads. */
  full(reader: Reader, event: string, isFull: boolean): void {
    const topic = this.#topics.get(event)
    if (topic === undefined) return
    if (!isFull) {
      if (topic.full.delete(reader)) topic.awake.add(reader)
      return
    }
    topic.full.add(reader)
    topic.awake.delete(reader)
    for (const watched of topic.groups.values()) {
      if (watched.readers.has(reader) && this.#awakeFor(topic, watched) === null) watched.isOwed = true
    }
    this.#retrySoon(0)
  }

  /** A group goes on after it was held, or has something new that nobody has seen. */
  owe(event: string, group: string): void {
    const watched = this.#topics.get(event)?.groups.get(group)
    if (watched === undefined) return
    watched.isOwed = true
    this.#retrySoon(0)
  }

  /** It stands still: what it was woken for others read meanwhile. */
  still(reader: Reader): void {
    for (const topic of this.#topics.values()) {
      if (!topic.awake.delete(reader)) continue
      for (const watched of topic.groups.values()) if (watched.readers.has(reader)) watched.isOwed = true
    }
    this.#retrySoon(0)
  }

  /** It reads no more. */
  gone(reader: Reader): void {
    this.still(reader)
    for (const topic of this.#topics.values()) {
      for (const watched of topic.groups.values()) watched.readers.delete(reader)
      topic.full.delete(reader)
      this.#tidy(topic)
    }
  }

  /** Something may lie in all streams: the store was away, or a subscriber goes on. */
  wakeAll(): void {
    for (const { groups } of this.#topics.values()) for (const watched of groups.values()) watched.isOwed = true
    this.#retrySoon(0)
  }

  #tidy(topic: WatchedTopic | undefined): void {
    if (topic === undefined) return
    for (const [group, { readers }] of topic.groups) if (readers.size === 0) topic.groups.delete(group)
    if (topic.groups.size === 0) this.#topics.delete(topic.event)
    this.#onChange()
  }

  // ── waking ────────────────────────────────────────────────────────────────

  #rouse(topic: WatchedTopic, reader: Reader): void {
    topic.awake.add(reader)
    for (const watched of topic.groups.values()) if (watched.readers.has(reader)) watched.isOwed = false
    reader.wake(topic.event)
  }

  /** The next of these that sleeps and would wake up. */
  #next(topic: WatchedTopic, readers: ReadonlySet<Reader>): Reader | null {
    const sleeping = [...readers].filter(
      (reader) => reader.isResponsive && !topic.awake.has(reader) && !topic.full.has(reader),
    )
    return sleeping.length === 0 ? null : sleeping[topic.turn++ % sleeping.length]!
  }

  #awakeFor(topic: WatchedTopic, { readers }: WatchedGroup): Reader | null {
    for (const reader of topic.awake) if (readers.has(reader)) return reader
    return null
  }

  #wakeGroup(topic: WatchedTopic, watched: WatchedGroup): void {
    const awake = this.#awakeFor(topic, watched)
    if (awake !== null) {
      watched.isOwed = false
      // Its read that is under way may have begun without this group.
      awake.wake(topic.event)
      return
    }
    const reader = this.#next(topic, watched.readers)
    if (reader === null) watched.isOwed = true
    else this.#rouse(topic, reader)
  }

  #retrySoon(delayMs: number): void {
    if (this.#isClosed) return
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = undefined
      let isOwing = false
      for (const topic of this.#topics.values()) {
        for (const watched of topic.groups.values()) {
          if (watched.isOwed) this.#wakeGroup(topic, watched)
          isOwing ||= watched.isOwed
        }
      }
      if (isOwing) this.#retrySoon(RETRY_MS)
      this.#onChange()
    }, delayMs)
  }

  // ── for whoever watches the streams ───────────────────────────────────────

  /** Streams of which nobody reads some group at the moment, each with the entry up to which such groups have read. */
  asleep(): Map<string, string> {
    const asleep = new Map<string, string>()
    for (const topic of this.#topics.values()) {
      const stream = streamOf(topic.event)
      for (const watched of topic.groups.values()) {
        if (watched.isOwed || this.#awakeFor(topic, watched) !== null) continue
        const before = asleep.get(stream)
        if (before === undefined || compareEntryIds(watched.upTo, before) < 0) asleep.set(stream, watched.upTo)
      }
    }
    return asleep
  }

  /** The stream has this entry. */
  arrived(stream: string, entryId: string): void {
    const topic = this.#topics.get(eventOf(stream)!)
    if (topic === undefined) return
    for (const watched of topic.groups.values()) {
      if (compareEntryIds(watched.upTo, entryId) >= 0) continue
      this.#wakeGroup(topic, watched)
      if (watched.isOwed) this.#retrySoon(RETRY_MS)
    }
  }
}
