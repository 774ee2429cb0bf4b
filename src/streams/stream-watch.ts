import type { RedisClient } from '../redis/client.ts'
import { compareEntryIds } from './entry-id.ts'
import { streamOf } from './keys.ts'

/** One look at the streams lasts so long at most, milliseconds. */
export const WATCH_MS = 2000
/** Before a thread that could not be woken is looked for again, and before a look that failed, milliseconds. */
const RETRY_MS = 50
/** Between two tries to end a look early, milliseconds. */
const INTERRUPT_MS = 2

/** A thread that reads. */
export interface Reading {
  /** False while its loop stands still: others are woken. */
  readonly isResponsive: boolean
  wake(event: string): void
}

/** One group of one event, and the threads of this process that read as it. */
interface Watched {
  readonly readers: Set<Reading>
  /** All entries up to this one have been given to somebody. */
  upTo: string
  /** Nobody could be woken for it when it was due. */
  isOwed: boolean
}

interface Topic {
  readonly event: string
  readonly groups: Map<string, Watched>
  /** Threads that are reading now. */
  readonly awake: Set<Reading>
  /** Threads that have no room: they read on by themselves when they have. */
  readonly full: Set<Reading>
  /** Whose turn it is. */
  turn: number
}

/**
 * Waits for new entries, in the primary and for all its threads: one blocking read of all streams whose readers sleep.
 * It wakes one thread per group; who is awake reads on by itself until there is nothing left.
 */
export class StreamWatch {
  /** Its own: it blocks. */
  readonly #blocking: RedisClient
  readonly #commands: RedisClient
  readonly #topics = new Map<string, Topic>()
  #isRunning = false
  #isBlocked = false
  #isChanged = false
  #isInterrupting = false
  #wakeLoop: (() => void) | null = null
  #retryTimer: NodeJS.Timeout | undefined
  #loop: Promise<void> = Promise.resolve()

  constructor(blocking: RedisClient, commands: RedisClient) {
    this.#blocking = blocking
    this.#commands = commands
  }

  start(): void {
    this.#isRunning = true
    this.#loop = this.#run()
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    clearTimeout(this.#retryTimer)
    this.#changed()
    await this.#loop
  }

  /** A thread reads as this group from now on; it is woken for what may be there already. */
  add(reading: Reading, event: string, group: string): void {
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
    watched.readers.add(reading)
    watched.isOwed = true
    this.#retrySoon(0)
  }

  remove(reading: Reading, event: string, group: string): void {
    const topic = this.#topics.get(event)
    topic?.groups.get(group)?.readers.delete(reading)
    this.#tidy(topic)
  }

  /** It has read all up to this entry, and sleeps. */
  idle(reading: Reading, event: string, upTo: string): void {
    const topic = this.#topics.get(event)
    if (topic === undefined || !topic.awake.delete(reading)) return
    for (const watched of topic.groups.values()) {
      if (watched.readers.has(reading) && compareEntryIds(watched.upTo, upTo) < 0) watched.upTo = upTo
    }
    this.#changed()
  }

  /** It has more than it can read at a time: one that sleeps helps out. */
  more(reading: Reading, event: string): void {
    const topic = this.#topics.get(event)
    if (topic === undefined) return
    for (const { readers } of topic.groups.values()) {
      if (!readers.has(reading)) continue
      const helper = this.#next(topic, readers)
      if (helper === null) continue
      this.#rouse(topic, helper)
      return
    }
  }

  /** It has its hands full: what it was woken for others read meanwhile. Or it has room again, and reads. */
  full(reading: Reading, event: string, isFull: boolean): void {
    const topic = this.#topics.get(event)
    if (topic === undefined) return
    if (!isFull) {
      if (topic.full.delete(reading)) topic.awake.add(reading)
      return
    }
    topic.full.add(reading)
    topic.awake.delete(reading)
    for (const watched of topic.groups.values()) {
      if (watched.readers.has(reading) && this.#awakeFor(topic, watched) === null) watched.isOwed = true
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
  still(reading: Reading): void {
    for (const topic of this.#topics.values()) {
      if (!topic.awake.delete(reading)) continue
      for (const watched of topic.groups.values()) if (watched.readers.has(reading)) watched.isOwed = true
    }
    this.#retrySoon(0)
  }

  /** It reads no more. */
  gone(reading: Reading): void {
    this.still(reading)
    for (const topic of this.#topics.values()) {
      for (const watched of topic.groups.values()) watched.readers.delete(reading)
      topic.full.delete(reading)
      this.#tidy(topic)
    }
  }

  /** Something may lie in all streams: the store was away, or a subscriber goes on. */
  wakeAll(): void {
    for (const { groups } of this.#topics.values()) for (const watched of groups.values()) watched.isOwed = true
    this.#retrySoon(0)
  }

  #tidy(topic: Topic | undefined): void {
    if (topic === undefined) return
    for (const [group, { readers }] of topic.groups) if (readers.size === 0) topic.groups.delete(group)
    if (topic.groups.size === 0) this.#topics.delete(topic.event)
    this.#changed()
  }

  // ── waking ────────────────────────────────────────────────────────────────

  #rouse(topic: Topic, reading: Reading): void {
    topic.awake.add(reading)
    for (const watched of topic.groups.values()) if (watched.readers.has(reading)) watched.isOwed = false
    reading.wake(topic.event)
  }

  /** The next of these that sleeps and would wake up. */
  #next(topic: Topic, readers: ReadonlySet<Reading>): Reading | null {
    const sleeping = [...readers].filter(
      (reading) => reading.isResponsive && !topic.awake.has(reading) && !topic.full.has(reading),
    )
    return sleeping.length === 0 ? null : sleeping[topic.turn++ % sleeping.length]!
  }

  #awakeFor(topic: Topic, { readers }: Watched): Reading | null {
    for (const reading of topic.awake) if (readers.has(reading)) return reading
    return null
  }

  #wakeGroup(topic: Topic, watched: Watched): void {
    const awake = this.#awakeFor(topic, watched)
    if (awake !== null) {
      watched.isOwed = false
      // Its read that is under way may have begun without this group.
      awake.wake(topic.event)
      return
    }
    const reading = this.#next(topic, watched.readers)
    if (reading === null) watched.isOwed = true
    else this.#rouse(topic, reading)
  }

  #retrySoon(delayMs: number): void {
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
      this.#changed()
    }, delayMs)
  }

  // ── waiting ───────────────────────────────────────────────────────────────

  /** What is watched has changed: the look that is under way ends. */
  #changed(): void {
    this.#isChanged = true
    this.#wakeLoop?.()
    if (this.#isBlocked && !this.#isInterrupting) void this.#interrupt()
  }

  async #interrupt(): Promise<void> {
    this.#isInterrupting = true
    // Those of one turn together.
    await new Promise((resolve) => setImmediate(resolve))
    // The read may not have reached the server yet: then there is nothing to end, and it is tried again.
    while (this.#isBlocked && this.#isChanged && this.#clientId !== null) {
      const ended = await this.#commands.command<number>('client', ['UNBLOCK', this.#clientId]).catch(() => 0)
      if (ended !== 1) await new Promise((resolve) => setTimeout(resolve, INTERRUPT_MS))
    }
    this.#isInterrupting = false
  }

  #clientId: number | null = null

  async #run(): Promise<void> {
    const stopHearing = this.#blocking.onUp(() => {
      this.#clientId = null
    })
    while (this.#isRunning) {
      try {
        this.#clientId ??= await this.#blocking.command<number>('client', ['ID'])
        this.#isChanged = false
        const asleep = this.#asleep()
        if (asleep.size === 0) {
          await this.#untilChanged()
          continue
        }
        const streams = [...asleep.keys()].map((topic) => streamOf(topic.event))
        this.#isBlocked = true
        const reply = await this.#blocking.command<[string, [string, unknown][]][] | null>('xread', [
          ...['COUNT', 1, 'BLOCK', WATCH_MS, 'STREAMS'],
          ...streams,
          ...asleep.values(),
        ])
        this.#isBlocked = false
        for (const [stream, entries] of reply ?? []) {
          for (const topic of asleep.keys()) if (streamOf(topic.event) === stream) this.#arrived(topic, entries[0]![0])
        }
      } catch {
        // The connection says what is wrong, and when it is back.
        this.#isBlocked = false
        this.#clientId = null
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS * 4))
        if (this.#blocking.isReady) this.wakeAll()
      }
    }
    stopHearing()
  }

  /** Topics with a group that nobody reads at the moment, each with the entry up to which such groups have read. */
  #asleep(): Map<Topic, string> {
    const asleep = new Map<Topic, string>()
    for (const topic of this.#topics.values()) {
      for (const watched of topic.groups.values()) {
        if (watched.isOwed || this.#awakeFor(topic, watched) !== null) continue
        const before = asleep.get(topic)
        if (before === undefined || compareEntryIds(watched.upTo, before) < 0) asleep.set(topic, watched.upTo)
      }
    }
    return asleep
  }

  #arrived(topic: Topic, entryId: string): void {
    for (const watched of topic.groups.values()) {
      if (compareEntryIds(watched.upTo, entryId) >= 0) continue
      this.#wakeGroup(topic, watched)
      if (watched.isOwed) this.#retrySoon(RETRY_MS)
    }
  }

  async #untilChanged(): Promise<void> {
    if (this.#isChanged || !this.#isRunning) return
    await new Promise<void>((resolve) => {
      this.#wakeLoop = resolve
    })
    this.#wakeLoop = null
  }
}
