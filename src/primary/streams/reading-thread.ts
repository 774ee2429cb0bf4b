// One thread that reads streams, and what wakes it.
import type { SubscribeOptions } from '../../contracts/event-bus.ts'
import {
  broadcastGroupOf,
  compareEntryIds,
  consumerOf,
  eventOf,
  groupOf,
  streamOf,
} from '../../runtime/streams/keys.ts'
import type { StreamCommand } from '../../transport/stream-messages.ts'
import type { SubscriberInstance } from '../events/consumer.ts'

/** One group of one stream that this process reads. */
export interface StreamGroup {
  readonly event: string
  readonly stream: string
  readonly group: string
  /** True for a group of one thread alone. */
  readonly isBroadcast: boolean
}

/** The group of one subscriber of a thread. */
export interface OwnStreamGroup extends StreamGroup {
  /** The subscriber's index in its thread. */
  readonly subscriberIndex: number
}

/** A subscriber of a thread. */
export interface Subscriber {
  /** Its index in its thread. */
  readonly subscriberIndex: number
  readonly event: string
  /** The name of its group when its options have none. */
  readonly identity: string
  readonly options: SubscribeOptions
}

export const groupKey = (stream: string, group: string): string => `${stream} ${group}`

/** @param consumer of the thread */
function streamGroupOf({ subscriberIndex, event, identity, options }: Subscriber, consumer: string): OwnStreamGroup {
  const name = options.group ?? identity
  const isBroadcast = options.broadcast === true
  const group = isBroadcast ? broadcastGroupOf(name, consumer) : groupOf(name)
  return { subscriberIndex, event, stream: streamOf(event), group, isBroadcast }
}

/** When no thread could be woken for a group, it is tried again after this time, milliseconds. */
const RETRY_MS = 50

/** A thread that reads. */
interface Reader {
  /** False while its loop stands still: others are woken. */
  readonly isResponsive: boolean
  wake(event: string): void
}

/** One group of one event, and the threads of this process that read it. */
interface WatchedGroup {
  readonly readers: Set<Reader>
  /** All entries up to this one have been read by the group. */
  upTo: string
  /** No thread could be woken for it when it was due. */
  isDue: boolean
}

interface WatchedTopic {
  readonly event: string
  readonly groups: Map<string, WatchedGroup>
  /** Threads that are reading now. */
  readonly awake: Set<Reader>
  /** Threads that have no room: they read on by themselves when they have room again. */
  readonly full: Set<Reader>
  /** Whose turn it is. */
  turn: number
}

/**
 * Knows which threads of this process read at the moment, which sleep, and up to which entry each group has read, and wakes the threads.
 * One thread per group is enough: it reads on by itself until there is nothing left.
 */
export class ReaderWakeups {
  readonly #onChange: () => void
  readonly #topics = new Map<string, WatchedTopic>()
  #retryTimer: NodeJS.Timeout | undefined
  #isClosed = false

  /** @param onChange told when other streams are to be watched, or from another entry */
  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  /** No more thread is woken. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retryTimer)
  }

  /** A thread reads this group from now on. It is woken, since there may be entries already. */
  add(reader: Reader, event: string, group: string): void {
    let topic = this.#topics.get(event)
    if (topic === undefined) {
      topic = { event, groups: new Map(), awake: new Set(), full: new Set(), turn: 0 }
      this.#topics.set(event, topic)
    }
    let watched = topic.groups.get(group)
    if (watched === undefined) {
      watched = { readers: new Set(), upTo: '0-0', isDue: false }
      topic.groups.set(group, watched)
    }
    watched.readers.add(reader)
    watched.isDue = true
    this.#wakeDueIn(0)
  }

  remove(reader: Reader, event: string, group: string): void {
    const topic = this.#topics.get(event)
    topic?.groups.get(group)?.readers.delete(reader)
    this.#tidy(topic)
  }

  /** A thread has read all up to this entry, and sleeps. */
  idle(reader: Reader, event: string, upTo: string): void {
    const topic = this.#topics.get(event)
    if (topic === undefined || !topic.awake.delete(reader)) return
    for (const watched of topic.groups.values()) {
      if (watched.readers.has(reader) && compareEntryIds(watched.upTo, upTo) < 0) watched.upTo = upTo
    }
    this.#onChange()
  }

  /** A thread has more than it can read at a time: one that sleeps helps. */
  more(reader: Reader, event: string): void {
    const topic = this.#topics.get(event)
    if (topic === undefined) return
    for (const { readers } of topic.groups.values()) {
      if (!readers.has(reader)) continue
      const helper = this.#next(topic, readers)
      if (helper === null) continue
      this.#wake(topic, helper)
      return
    }
  }

  /** A thread has no room for more entries, so that others read its groups meanwhile; or it has room again and reads. */
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
      if (watched.readers.has(reader) && this.#readerOf(topic, watched) === null) watched.isDue = true
    }
    this.#wakeDueIn(0)
  }

  /** A group is no longer held: a thread is to read it. */
  wakeSoon(event: string, group: string): void {
    const watched = this.#topics.get(event)?.groups.get(group)
    if (watched === undefined) return
    watched.isDue = true
    this.#wakeDueIn(0)
  }

  /** The loop of a thread stands still: others read its groups meanwhile. */
  standsStill(reader: Reader): void {
    for (const topic of this.#topics.values()) {
      if (!topic.awake.delete(reader)) continue
      for (const watched of topic.groups.values()) if (watched.readers.has(reader)) watched.isDue = true
    }
    this.#wakeDueIn(0)
  }

  /** A thread reads no more. */
  gone(reader: Reader): void {
    this.standsStill(reader)
    for (const topic of this.#topics.values()) {
      for (const watched of topic.groups.values()) watched.readers.delete(reader)
      topic.full.delete(reader)
      this.#tidy(topic)
    }
  }

  /** There may be entries in all streams: the store was away, or paused subscribers go on. */
  wakeAll(): void {
    for (const { groups } of this.#topics.values()) for (const watched of groups.values()) watched.isDue = true
    this.#wakeDueIn(0)
  }

  #tidy(topic: WatchedTopic | undefined): void {
    if (topic === undefined) return
    for (const [group, { readers }] of topic.groups) if (readers.size === 0) topic.groups.delete(group)
    if (topic.groups.size === 0) this.#topics.delete(topic.event)
    this.#onChange()
  }

  // ── waking ────────────────────────────────────────────────────────────────

  #wake(topic: WatchedTopic, reader: Reader): void {
    topic.awake.add(reader)
    for (const watched of topic.groups.values()) if (watched.readers.has(reader)) watched.isDue = false
    reader.wake(topic.event)
  }

  /** The next of these threads that sleeps and can be woken. */
  #next(topic: WatchedTopic, readers: ReadonlySet<Reader>): Reader | null {
    const sleeping = [...readers].filter(
      (reader) => reader.isResponsive && !topic.awake.has(reader) && !topic.full.has(reader),
    )
    return sleeping.length === 0 ? null : sleeping[topic.turn++ % sleeping.length]!
  }

  #readerOf(topic: WatchedTopic, { readers }: WatchedGroup): Reader | null {
    for (const reader of topic.awake) if (readers.has(reader)) return reader
    return null
  }

  #wakeGroup(topic: WatchedTopic, watched: WatchedGroup): void {
    const awake = this.#readerOf(topic, watched)
    if (awake !== null) {
      watched.isDue = false
      // The read that is under way may have begun without this group.
      awake.wake(topic.event)
      return
    }
    const reader = this.#next(topic, watched.readers)
    if (reader === null) watched.isDue = true
    else this.#wake(topic, reader)
  }

  #wakeDueIn(delayMs: number): void {
    if (this.#isClosed) return
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = undefined
      let isAnyDue = false
      for (const topic of this.#topics.values()) {
        for (const watched of topic.groups.values()) {
          if (watched.isDue) this.#wakeGroup(topic, watched)
          isAnyDue ||= watched.isDue
        }
      }
      if (isAnyDue) this.#wakeDueIn(RETRY_MS)
      this.#onChange()
    }, delayMs)
  }

  // ── for the watch of the streams ──────────────────────────────────────────

  /** The streams with a group that no thread reads at the moment, each with the entry up to which these groups have read. */
  streamsToWatch(): Map<string, string> {
    const toWatch = new Map<string, string>()
    for (const topic of this.#topics.values()) {
      const stream = streamOf(topic.event)
      for (const watched of topic.groups.values()) {
        if (watched.isDue || this.#readerOf(topic, watched) !== null) continue
        const before = toWatch.get(stream)
        if (before === undefined || compareEntryIds(watched.upTo, before) < 0) toWatch.set(stream, watched.upTo)
      }
    }
    return toWatch
  }

  /** A stream ends at this entry: where that is before what has been read, it was made anew, and is read from its beginning. */
  endsAt(stream: string, lastId: string): void {
    const topic = this.#topics.get(eventOf(stream)!)
    for (const watched of topic?.groups.values() ?? []) {
      if (compareEntryIds(lastId, watched.upTo) >= 0) continue
      watched.upTo = '0-0'
      watched.isDue = true
    }
    this.#wakeDueIn(0)
  }

  /** A new entry is in a stream. */
  arrived(stream: string, entryId: string): void {
    const topic = this.#topics.get(eventOf(stream)!)
    if (topic === undefined) return
    for (const watched of topic.groups.values()) {
      if (compareEntryIds(watched.upTo, entryId) >= 0) continue
      this.#wakeGroup(topic, watched)
      if (watched.isDue) this.#wakeDueIn(RETRY_MS)
    }
  }
}

/** The connection of the coordinator to a thread that reads. */
export interface ReaderLink {
  /** False while its loop stands still, or it takes no more work. */
  readonly isResponsive: boolean
  send(command: StreamCommand): void
  /** The hub's instance of one of its subscribers. */
  instanceOf(subscriberIndex: number): SubscriberInstance | null
  /** Told when it has stopped reading and has no pending entries. */
  stopped(): void
}

/** A thread that reads: its consumer's name and its groups. */
export class ReadingThread implements Reader {
  readonly thread: number | 'primary'
  readonly consumer: string
  readonly link: ReaderLink
  readonly #streamGroups: OwnStreamGroup[] = []
  /** True when its groups are being opened, or are open: a group that comes later is opened at once. */
  hasBegun = false
  /** True when all groups are open that it had at the beginning. */
  isStarted = false
  isStopped = false

  constructor(thread: number | 'primary', replica: string, link: ReaderLink) {
    this.thread = thread
    this.consumer = consumerOf(replica, thread)
    this.link = link
  }

  get isResponsive(): boolean {
    return this.link.isResponsive
  }
  wake(event: string): void {
    this.link.send({ kind: 'wake', event })
  }
  hold({ event, group }: StreamGroup, isHeld: boolean): void {
    this.link.send({ kind: 'hold', event, group, isHeld })
  }

  /** One group for each of its subscribers. */
  get streamGroups(): readonly OwnStreamGroup[] {
    return this.#streamGroups
  }

  add(subscriber: Subscriber): OwnStreamGroup {
    const streamGroup = streamGroupOf(subscriber, this.consumer)
    this.#streamGroups.push(streamGroup)
    return streamGroup
  }

  /** @returns the group when no subscriber of this thread is left for it */
  remove(subscriberIndex: number): StreamGroup | null {
    const at = this.#streamGroups.findIndex((streamGroup) => streamGroup.subscriberIndex === subscriberIndex)
    if (at < 0) return null
    const [streamGroup] = this.#streamGroups.splice(at, 1)
    return this.find(streamGroup!.stream, streamGroup!.group) === undefined ? streamGroup! : null
  }

  /** Takes away all its groups. */
  removeAll(): OwnStreamGroup[] {
    return this.#streamGroups.splice(0)
  }

  find(stream: string, group: string): OwnStreamGroup | undefined {
    return this.#streamGroups.find((streamGroup) => streamGroup.stream === stream && streamGroup.group === group)
  }
}

/** The groups of these threads and those others, each once. */
export function streamGroupsOf(threads: readonly ReadingThread[], others: Iterable<StreamGroup> = []): StreamGroup[] {
  const streamGroups = new Map<string, StreamGroup>()
  for (const streamGroup of others) streamGroups.set(groupKey(streamGroup.stream, streamGroup.group), streamGroup)
  for (const thread of threads)
    for (const streamGroup of thread.streamGroups)
      streamGroups.set(groupKey(streamGroup.stream, streamGroup.group), streamGroup)
  return [...streamGroups.values()]
}
