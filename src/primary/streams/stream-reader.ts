// Reads the streams of a process: each as long as there is something, and room for it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { LogLevel } from '../../contracts/logger.ts'
import { ensureGroup, isNoGroup } from '../../runtime/streams/consumers.ts'
import { compareEntryIds } from '../../runtime/streams/keys.ts'
import { retryWhile } from '../../runtime/streams/publisher.ts'
import { type Entry, lastEntryId, readGroup } from '../../runtime/streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { StreamGroup } from './stream-group.ts'

/** About how many characters one read takes, by the largest payload of the one before. */
const READ_MAX_CHARS = 8 << 20
/** After a read that found little, the next one waits so long, milliseconds: a read costs the same whatever it finds. */
const GATHER_MS = 2
/** A read that finds fewer entries may have found the last one. */
const FEW_ENTRIES = 8
/** Before what has failed is tried again, milliseconds. */
const RETRY_MS = 250

interface StreamReaderOptions {
  redis: RedisClient
  /** The consumer of this process. */
  consumer: string
  /** Sends what waits to be sent: another command goes out now. */
  flush: () => void
  take: (group: StreamGroup, entry: Entry) => void
  /** Claims what this process has been given and does not have: an answer was lost on its way. */
  claimOwn: (group: StreamGroup) => Promise<void>
  /** Other streams are to be watched, or from elsewhere on. */
  onChange: () => void
  log: (level: LogLevel, message: string) => void
}

/** A stream that this process reads. */
interface Topic {
  readonly event: string
  readonly stream: string
  readonly groups: StreamGroup[]
  isReading: boolean
  /** Something has come while it was read. */
  isWoken: boolean
  /** All groups with room have had everything up to this entry; null while it is read, and when nobody has room. */
  upTo: string | null
  /** Length of the largest payload of the last read. */
  largestChars: number
}

/** What one read of all groups with room has brought. */
interface Round {
  /** The last entry of the stream before the groups were read; null when that was not asked. */
  readonly upTo: string | null
  readonly batches: readonly { group: StreamGroup; count: number; entries: readonly Entry[] }[]
  readonly arrived: number
  /** A group got as many as it asked for. */
  readonly isFull: boolean
}

export class StreamReader {
  readonly #options: StreamReaderOptions
  readonly #topics = new Map<string, Topic>()
  #isStopping = false

  constructor(options: StreamReaderOptions) {
    this.#options = options
  }

  /** The group may be read. */
  add(group: StreamGroup): void {
    const { event, stream } = group
    let topic = this.#topics.get(stream)
    if (topic === undefined) {
      topic = { event, stream, groups: [], isReading: false, isWoken: false, upTo: null, largestChars: 1 }
      this.#topics.set(stream, topic)
    }
    if (!topic.groups.includes(group)) topic.groups.push(group)
    this.#wake(topic)
  }

  remove(group: StreamGroup): void {
    const topic = this.#topics.get(group.stream)
    const at = topic?.groups.indexOf(group) ?? -1
    if (at < 0) return
    topic!.groups.splice(at, 1)
    if (topic!.groups.length === 0) this.#topics.delete(group.stream)
    this.#options.onChange()
  }

  /** There is room again, or may be. */
  wake(stream: string): void {
    const topic = this.#topics.get(stream)
    if (topic !== undefined) this.#wake(topic)
  }

  wakeAll(): void {
    for (const topic of this.#topics.values()) this.#wake(topic)
  }

  // ── for the watch of the streams ──────────────────────────────────────────

  /** The streams that wait for their next entry, each with the entry up to which they have been read. */
  toWatch(): Map<string, string> {
    const watched = new Map<string, string>()
    for (const { stream, upTo, isReading } of this.#topics.values())
      if (!isReading && upTo !== null) watched.set(stream, upTo)
    return watched
  }

  /** A stream ends at this entry: where that is before what has been read, it was made anew, and is read from its beginning. */
  endsAt(stream: string, lastId: string): void {
    const topic = this.#topics.get(stream)
    if (topic?.upTo != null && compareEntryIds(lastId, topic.upTo) < 0) this.#wake(topic)
  }

  // ── one stream ────────────────────────────────────────────────────────────

  #wake(topic: Topic): void {
    if (this.#isStopping) return
    topic.isWoken = true
    if (!topic.isReading) void this.#read(topic)
  }

  async #read(topic: Topic): Promise<void> {
    topic.isReading = true
    while (topic.isWoken && !this.#isStopping) {
      try {
        await this.#readAll(topic)
      } catch (fault) {
        if (!this.#isStopping) await this.#recover(topic, fault)
      }
    }
    topic.isReading = false
    this.#options.onChange()
  }

  /** Until there is nothing left, or no room. */
  async #readAll(topic: Topic): Promise<void> {
    topic.isWoken = false
    topic.upTo = null
    for (const group of topic.groups) group.awake()
    let round = await this.#fetch(topic, true)
    while (round !== null) {
      const { upTo, arrived, isFull } = round
      if (this.#isStopping || (upTo !== null && arrived === 0)) {
        this.#take(topic, round)
        topic.upTo = upTo
        return
      }
      // The next entries are on their way while these are handled.
      const next = isFull ? this.#fetch(topic, false) : null
      // It is waited for a moment later.
      next?.catch(() => {})
      this.#take(topic, round)
      if (next === null && arrived > 0) await sleep(GATHER_MS)
      round = await (next ?? this.#fetch(topic, arrived < FEW_ENTRIES))
    }
  }

  /** @returns null when no group has room */
  async #fetch(topic: Topic, wantsEnd: boolean): Promise<Round | null> {
    const { redis, consumer, flush } = this.#options
    flush()
    const { stream, groups, largestChars } = topic
    const asked = groups.flatMap((group) => {
      const count = Math.min(group.wanted, Math.max(1, Math.floor(READ_MAX_CHARS / largestChars)))
      group.isFull = count <= 0
      return count <= 0 ? [] : [{ group, count }]
    })
    if (asked.length === 0) return null
    for (const { group, count } of asked) group.arriving += count
    try {
      const [upTo, ...batches] = await Promise.all([
        // Before the groups, on the same connection: they may have missed what comes after this entry, and nothing before it.
        wantsEnd ? lastEntryId(redis, stream) : null,
        ...asked.map(async ({ group, count }) => {
          const entries = await readGroup(redis, stream, group.name, consumer, count)
          return { group, count, entries }
        }),
      ])
      const arrived = batches.reduce((sum, { entries }) => sum + entries.length, 0)
      return { upTo, batches, arrived, isFull: batches.some(({ count, entries }) => entries.length >= count) }
    } catch (fault) {
      for (const { group, count } of asked) group.arriving -= count
      throw fault
    }
  }

  #take(topic: Topic, { batches }: Round): void {
    topic.largestChars = 1
    for (const { group, count, entries } of batches) {
      group.arriving -= count
      if (entries.length >= count) group.readFully()
      for (const entry of entries) {
        topic.largestChars = Math.max(topic.largestChars, entry[1]?.[PAYLOAD_FIELD]?.length ?? 0)
        this.#options.take(group, entry)
      }
    }
  }

  // ── after a fault ─────────────────────────────────────────────────────────

  async #recover(topic: Topic, fault: unknown): Promise<void> {
    const { redis, claimOwn, log } = this.#options
    if (isNoGroup(fault)) {
      log(
        'WARNING',
        `The stream of ${topic.event} or a group of it has gone from the key-value store: its groups are made anew, and read from its beginning`,
      )
    }
    const restore = async (): Promise<void> => {
      for (const { stream, name } of topic.groups) await ensureGroup(redis, stream, name, '0')
      for (const group of topic.groups) await claimOwn(group)
    }
    await sleep(RETRY_MS)
    await retryWhile(() => !this.#isStopping, restore, { pauseMs: RETRY_MS })
    topic.isWoken = true
  }

  /** Reads nothing more. */
  stop(): void {
    this.#isStopping = true
  }

  /** True while answers of the store are on their way. */
  get isReading(): boolean {
    return [...this.#topics.values()].some(({ isReading }) => isReading)
  }
}

/** The place of the payload among the fields of an entry that this service has written. */
const PAYLOAD_FIELD = 3
