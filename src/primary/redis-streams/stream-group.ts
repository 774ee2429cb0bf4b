// A consumer group of a stream as this process reads it, and the entries of it that this process has.
import type { LogLevel } from '../../contracts/logger.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { Consumer, Delivery, EventSource, FailedDelivery, Share } from '../events/consumer.ts'

/** What is known of a delivery that nobody has begun. */
export const FIRST_ATTEMPT = { attempt: 1, deaths: 0, dueMs: 0, error: '' } as const

/** Entries of a group that a process has for each of its subscribers, at most, and about how many characters of payload. */
const HELD_MAX = 1024
const HELD_MAX_CHARS = 32 << 20
/** Of a group that handles few at a time so many wait here, and so many of one whose tool is away: other processes may have places for the rest. */
const WAITING_MAX = 64
/** Entries that are read at a time: at first, and at most, since the primary has requests to serve between two reads. */
const BATCH_MIN = 16
const BATCH_MAX = 128
/** A process with so many entries reads few at a time: the rest is for others. */
const MANY = 512

/** This process as the streams know it. */
export interface StreamProcess {
  redis: RedisClient
  /** REPLICA_ID. */
  replica: string
  /** Its consumer in each group. */
  consumer: string
  /** False when it does not have its name: entries under it belong to another process. */
  isOurs: () => boolean
  /** False when it begins nothing any more. */
  mayBegin: () => boolean
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/** Told what becomes of an entry. */
export interface Settlements {
  /** It was handled, or is to be forgotten. */
  acknowledge(entry: TakenEntry): void
  /** Nobody here takes it: other processes may. */
  release(entry: TakenEntry): void
  /** It has begun, or waits for its next attempt, which another process makes if this one ends. */
  noteAttempt(entry: TakenEntry, delivery: Delivery, dueMs: number): void
  /** Resolves when the store has the dead letter. The entry of a group that processes share is acknowledged with it. */
  storeDeadLetter(entry: TakenEntry, letter: FailedDelivery): Promise<void>
}

/** An entry that this process has, from when it is read until the store has taken what became of it. */
export class TakenEntry implements EventSource {
  readonly isBroker = true
  readonly group: StreamGroup
  /** The stream's own id of the entry. */
  readonly id: string
  /** Of its payload. */
  readonly chars: number
  /** Its place among those of its group; -1: it is none of them any more. */
  place = -1
  /** When the store was last told that this process has it, by the steady clock. */
  renewedMs = steadyMs()
  /** The store knows of attempts: of those that have failed, and of the first one of an event that expires. */
  hasAttempts = false
  /** Its event expires unless a thread has begun with it in time. */
  isMortal = false
  /** Told when it is done, or given back. */
  onEnded: (() => void) | null = null
  readonly #settlements: Settlements
  /** Deliveries that have not ended: of a broadcast one for each thread. */
  #open = 0
  #isStored = false
  #isGivenBack = false

  constructor(group: StreamGroup, id: string, chars: number, settlements: Settlements) {
    this.group = group
    this.id = id
    this.chars = chars
    this.#settlements = settlements
  }

  accepted(): void {
    this.#open++
  }

  begun(delivery: Delivery): void {
    if (this.isMortal && !this.hasAttempts) this.#settlements.noteAttempt(this, delivery, 0)
  }

  retrying(delivery: Delivery, dueMs: number): boolean {
    if (!this.group.isBroadcast) this.#settlements.noteAttempt(this, delivery, dueMs)
    return false
  }

  storeDeadLetter(_: Delivery, letter: FailedDelivery): Promise<void> {
    this.#isStored ||= !this.group.isBroadcast
    return this.#settlements.storeDeadLetter(this, letter)
  }

  ended(_: Delivery, isDone: boolean): void {
    this.#isGivenBack ||= !isDone
    if (--this.#open > 0) return
    // Nobody else gets the entry of a broadcast, which has a group in each process.
    if (this.#isGivenBack && !this.group.isBroadcast) this.#settlements.release(this)
    else if (!this.#isStored) this.#settlements.acknowledge(this)
    this.over()
  }

  over(): void {
    this.onEnded?.()
    this.onEnded = null
  }
}

export class StreamGroup {
  readonly event: string
  readonly stream: string
  /** The group's name in the stream, and among the subscribers. */
  readonly name: string
  readonly subscriber: string
  readonly isBroadcast: boolean
  /** Of an entry with which nothing has been done. */
  readonly firstShares: readonly Share[]
  /** What the hub knows of it; null while nobody here subscribes. */
  consumer: Consumer | null = null
  /** It is there, and what a former process has left in it is claimed. */
  isOpen = false
  /** There was no room for more when it was to be read. */
  isFull = false
  /** Entries on their way from the store. */
  arriving = 0
  /** Entries whose acknowledgement is to be sent. */
  acknowledged: TakenEntry[] = []
  readonly #entries: TakenEntry[] = []
  #chars = 0
  #batch = BATCH_MIN

  constructor(place: Pick<StreamGroup, 'event' | 'stream' | 'name' | 'subscriber' | 'isBroadcast'>) {
    this.event = place.event
    this.stream = place.stream
    this.name = place.name
    this.subscriber = place.subscriber
    this.isBroadcast = place.isBroadcast
    const share = { ...FIRST_ATTEMPT, isBegun: false, group: place.subscriber }
    this.firstShares = [place.isBroadcast ? share : { ...share, instance: null }]
  }

  get size(): number {
    return this.#entries.length
  }

  get entries(): readonly TakenEntry[] {
    return this.#entries
  }

  has(id: string): boolean {
    return this.#entries.some((entry) => entry.id === id)
  }

  add(entry: TakenEntry): void {
    entry.place = this.#entries.push(entry) - 1
    this.#chars += entry.chars
  }

  /** @returns false when it had been removed before */
  remove(entry: TakenEntry): boolean {
    const { place } = entry
    if (place < 0) return false
    entry.place = -1
    this.#chars -= entry.chars
    const last = this.#entries.pop()!
    if (last === entry) return true
    this.#entries[place] = last
    last.place = place
    return true
  }

  /** How many more entries this process takes; 0 or less: none. */
  get room(): number {
    const { consumer } = this
    if (!this.isOpen || consumer === null || this.#chars >= HELD_MAX_CHARS || !consumer.hasFreeThread) return 0
    return mostOf(consumer) - this.size - this.arriving
  }

  /** How many entries the next read takes. */
  get wanted(): number {
    return Math.min(this.room, this.size < MANY ? this.#batch : BATCH_MIN)
  }

  /** Something has come after a pause. */
  awake(): void {
    this.#batch = BATCH_MIN
  }

  /** A read has brought as many as it asked for: as long as they are handled at once, more and more are read at a time. */
  readFully(): void {
    if (this.size <= this.#batch) this.#batch = Math.min(BATCH_MAX, 2 * this.#batch)
  }
}

function mostOf({ isBounded, concurrency, outage, instances }: Consumer): number {
  if (isBounded) return concurrency + WAITING_MAX
  return outage === null ? HELD_MAX * instances.length : WAITING_MAX
}
