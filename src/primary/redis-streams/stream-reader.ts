// Reads the streams of a process, each while it has entries and its groups have room.
import { setTimeout as sleep } from 'node:timers/promises'
import { steadyMs } from '../../core/schedule/clock.ts'
import { compareEntryIds } from '../../runtime/redis-streams/keys.ts'
import { retryWhile } from '../../runtime/redis-streams/publisher.ts'
import {
  type Entry,
  ensureGroup,
  isNoGroup,
  lastEntryId,
  readGroup,
} from '../../runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { StreamGroup, StreamProcess } from './stream-group.ts'

/** Approximate characters of one read, estimated from the largest payload of the previous one. */
const READ_MAX_CHARS = 8 << 20
/** Pause after a read that found little, milliseconds: a read costs the same whatever it finds. */
const GATHER_MS = 2
/** A read with fewer entries may have found the last one. */
const FEW_ENTRIES = 8
/** Pause before a failed read is repeated, milliseconds. */
const RETRY_MS = 250

interface StreamReaderOptions extends Pick<StreamProcess, 'redis' | 'consumer' | 'log'> {
  /** Sends waiting acknowledgements together with another command. */
  flush: () => void
  take: (group: StreamGroup, entry: Entry) => void
  /** Claims entries of this process it has not received: an answer was lost on its way. */
  claimOwn: (group: StreamGroup) => Promise<void>
  /** The watched streams or their positions have changed. */
  onChange: () => void
}

/** A stream this process reads. */
interface Topic {
  readonly event: string
  readonly stream: string
  readonly groups: StreamGroup[]
  isReading: boolean
  /** True when entries came during the read. */
  isWoken: boolean
  /** Entry up to which all groups with room have read; null during a read, and when no group has room. */
  upTo: string | null
  /** Length of the largest payload of the last read. */
  largestChars: number
}

/** Result of one read of all groups with room. */
interface Round {
  /** Last entry of the stream before the groups were read; null if it was not asked for. */
  readonly upTo: string | null
  readonly batches: readonly { group: StreamGroup; count: number; entries: readonly Entry[] }[]
  readonly arrived: number
  /** True when a group got all entries it asked for. */
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

  /** There is or may be room again. */
  wake(stream: string): void {
    const topic = this.#topics.get(stream)
    if (topic !== undefined) this.#wake(topic)
  }

  wakeAll(): void {
    for (const topic of this.#topics.values()) this.#wake(topic)
  }

  // ── for the watch of the streams ──────────────────────────────────────────

  /** Streams waiting for their next entry, each with the entry up to which they have been read. */
  toWatch(): Map<string, string> {
    const watched = new Map<string, string>()
    for (const { stream, upTo, isReading } of this.#topics.values())
      if (!isReading && upTo !== null) watched.set(stream, upTo)
    return watched
  }

  /** A stream ends at this entry. If it lies before the entries already read, the stream was made anew and is read from its beginning. */
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

  /** Reads until there are no entries, or no room. */
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
      // Awaited below: until then its failure must not count as unhandled.
      next?.catch(() => {})
      this.#take(topic, round)
      if (next === null && arrived > 0) await sleep(GATHER_MS)
      round = await (next ?? this.#fetch(topic, arrived < FEW_ENTRIES))
    }
  }

  /** @returns null if no group has room */
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
        // Before the groups, on the same connection: they may have missed later entries, but no earlier ones.
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
    let isTold = false
    const tell = (): void => {
      if (isTold) return
      isTold = true
      log(
        'WARNING',
        `The stream of ${topic.event}, or a group of it, was missing from the key-value store: its groups are created again and read from its beginning`,
      )
    }
    if (isNoGroup(fault)) tell()
    const restore = async (): Promise<void> => {
      // The store may have lost them with the connection.
      for (const { stream, name } of topic.groups) if (await ensureGroup(redis, stream, name, '0')) tell()
      for (const group of topic.groups) await claimOwn(group)
    }
    await sleep(RETRY_MS)
    await retryWhile(() => !this.#isStopping, restore, { pauseMs: RETRY_MS })
    topic.isWoken = true
  }

  /** Stops reading. */
  stop(): void {
    this.#isStopping = true
  }

  /** True while answers of the store are on their way. */
  get isReading(): boolean {
    return [...this.#topics.values()].some(({ isReading }) => isReading)
  }
}

/** Index of the payload among the fields of an entry written by this service. */
const PAYLOAD_FIELD = 3

/** Maximum duration of one blocking read, milliseconds. */
export const WATCH_MS = 2000
/** Pause before a failed read is repeated, milliseconds. */
const WATCH_RETRY_MS = 200
/** Interval of the checks where the streams end, milliseconds: a deleted stream may begin anew with smaller ids, and no read waits for those. */
const ENDS_MS = 10_000
/** Pause between two attempts to end a read early, milliseconds. */
const INTERRUPT_MS = 2

/** Waits for new entries: one blocking read of all streams that have been read to their end. */
export class StreamWatch {
  readonly #reader: () => StreamReader
  /** A connection of its own, for the blocking read. */
  readonly #blocking: RedisClient
  readonly #commands: RedisClient
  /** The server's id of the blocking connection; null if unknown. */
  #clientId: number | null = null
  #isRunning = false
  #isBlocked = false
  #isChanged = false
  #isInterrupting = false
  #askedMs = steadyMs()
  #wakeLoop: (() => void) | null = null
  #loop: Promise<void> = Promise.resolve()

  constructor(blocking: RedisClient, commands: RedisClient, reader: () => StreamReader) {
    this.#blocking = blocking
    this.#commands = commands
    this.#reader = reader
  }

  start(): void {
    this.#isRunning = true
    this.#loop = this.#run()
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    this.changed()
    await this.#loop
  }

  /** The watched streams have changed: ends the current read. */
  changed(): void {
    this.#isChanged = true
    this.#wakeLoop?.()
    if (this.#isBlocked && !this.#isInterrupting) void this.#interrupt()
  }

  async #interrupt(): Promise<void> {
    this.#isInterrupting = true
    // One interruption for all changes of this turn of the loop.
    await new Promise((resolve) => setImmediate(resolve))
    // If the read has not reached the server yet, there is nothing to end, and the interruption is repeated.
    while (this.#isBlocked && this.#isChanged && this.#clientId !== null) {
      const ended = await this.#commands.command<number>('client', ['UNBLOCK', this.#clientId]).catch(() => 0)
      if (ended !== 1) await sleep(INTERRUPT_MS)
    }
    this.#isInterrupting = false
  }

  async #run(): Promise<void> {
    const stopHearing = this.#blocking.onUp(() => {
      this.#clientId = null
    })
    while (this.#isRunning) {
      try {
        this.#clientId ??= await this.#blocking.command<number>('client', ['ID'])
        this.#isChanged = false
        const toWatch = this.#reader().toWatch()
        if (toWatch.size === 0) {
          await this.#untilChanged()
          continue
        }
        this.#isBlocked = true
        const reply = await this.#blocking.command<[string, [string, unknown][]][] | null>('xread', [
          ...['COUNT', 1, 'BLOCK', WATCH_MS, 'STREAMS'],
          ...toWatch.keys(),
          ...toWatch.values(),
        ])
        this.#isBlocked = false
        for (const [stream] of reply ?? []) this.#reader().wake(stream)
        if (steadyMs() - this.#askedMs > ENDS_MS) await this.#askForEnds(toWatch.keys())
      } catch {
        // The connection logs its failure and its recovery.
        this.#isBlocked = false
        this.#clientId = null
        await sleep(WATCH_RETRY_MS)
        if (this.#blocking.isReady) this.#reader().wakeAll()
      }
    }
    stopHearing()
  }

  async #askForEnds(streams: Iterable<string>): Promise<void> {
    this.#askedMs = steadyMs()
    const ask = async (stream: string): Promise<void> => {
      const lastId = await lastEntryId(this.#commands, stream)
      // Before its first entry nothing waits for it.
      if (lastId !== '0-0') this.#reader().endsAt(stream, lastId)
    }
    await Promise.all([...streams].map(ask))
  }

  async #untilChanged(): Promise<void> {
    if (this.#isChanged || !this.#isRunning) return
    await new Promise<void>((resolve) => {
      this.#wakeLoop = resolve
    })
    this.#wakeLoop = null
  }
}
