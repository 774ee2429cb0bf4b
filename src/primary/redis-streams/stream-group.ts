// A consumer group as this process reads it, and the entries in hand.
//
//   closed → new   a subscriber came
//   new → open     the store has the group, and entries of a former process of this name are claimed
//   open → lost    a read failed, or the connection was lost: the answers of reads may be missing
//   lost → open    the store has the group again, and the entries of missing answers are claimed
//   … → closed     the last subscriber here has left
import type { LogLevel } from '../../contracts/logger.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import { type Consumer, NEW_SHARE, type Share } from '../events/consumer.ts'

/** Maximum number of entries in hand for each subscriber of a group, and about how many characters of payload. */
const HELD_MAX = 1024
const HELD_MAX_CHARS = 32 << 20
/** Maximum number of waiting entries of a group with a concurrency limit, and of one in an outage: other processes may have room for the rest. */
const WAITING_MAX = 64
/** First and largest number of entries of one read: the primary has requests to serve between two reads. */
const BATCH_MIN = 16
const BATCH_MAX = 128
/** Number of entries in hand above which a process reads few at a time: the rest is for others. */
const MANY = 512
/** Approximate characters of one read, estimated from the largest payload of the previous one. */
const READ_MAX_CHARS = 8 << 20

/** This process as the streams know it. */
export interface StreamProcess {
  redis: RedisClient
  /** REPLICA_ID. */
  replica: string
  /** Name of its consumer in each group. */
  consumer: string
  /** False without its name: entries under it belong to another process. */
  isOurs: () => boolean
  /** False when it starts no more deliveries. */
  mayBegin: () => boolean
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/** An entry in hand: from its read until the store has taken its outcome. */
export interface HeldEntry {
  /** Entry id in the stream. */
  readonly id: string
  /** Of its payload. */
  readonly chars: number
  /** Called when it is no longer in hand. */
  readonly onGone: (() => void) | null
}

export class StreamGroup {
  readonly event: string
  readonly stream: string
  /** The group's name in the stream, and its name among the subscribers. */
  readonly name: string
  readonly subscriber: string
  readonly isBroadcast: boolean
  /** State of an entry without attempts. */
  readonly firstShares: readonly Share[]
  state: 'closed' | 'new' | 'open' | 'lost' = 'closed'
  /** Why the store refuses to make it; null if it has not refused. */
  refusal: string | null = null
  /** The hub's consumer; null while closed. */
  consumer: Consumer | null = null
  /** Idle; reading, until a read finds nothing; `again`: entries may have come since the last read was sent. */
  reading: 'no' | 'yes' | 'again' = 'no'
  /** Time of the last read, by the steady clock. */
  readMs = 0
  /** Time when this process last showed in the group that it lives, by the steady clock. */
  touchedMs = 0
  /** True when there was no room at its last read. */
  isFull = false
  /** Requested entries on their way from the store. */
  arriving = 0
  /** Length of the largest payload of the last read. */
  largestChars = 1
  /** Ends its subscription to the stream's channel. */
  unsubscribe: (() => void) | null = null
  readonly #entries = new Map<string, HeldEntry>()
  #chars = 0
  #batch = BATCH_MIN

  constructor(place: Pick<StreamGroup, 'event' | 'stream' | 'name' | 'subscriber' | 'isBroadcast'>) {
    this.event = place.event
    this.stream = place.stream
    this.name = place.name
    this.subscriber = place.subscriber
    this.isBroadcast = place.isBroadcast
    this.firstShares = [{ ...NEW_SHARE, isBegun: false, group: place.subscriber }]
  }

  get size(): number {
    return this.#entries.size
  }

  get ids(): string[] {
    return [...this.#entries.keys()]
  }

  has(id: string): boolean {
    return this.#entries.has(id)
  }

  add(entry: HeldEntry): void {
    this.#entries.set(entry.id, entry)
    this.#chars += entry.chars
  }

  /** @returns false if it had been removed before */
  remove({ id, chars, onGone }: HeldEntry): boolean {
    if (!this.#entries.delete(id)) return false
    this.#chars -= chars
    onGone?.()
    return true
  }

  /** Number of entries this process may still take; 0 or less: none. */
  get room(): number {
    const { consumer } = this
    if (this.state !== 'open' || consumer === null || this.#chars >= HELD_MAX_CHARS || !consumer.hasFreeThread) return 0
    return mostOf(consumer) - this.size - this.arriving
  }

  /** Number of entries of the next read. */
  get wanted(): number {
    const count = Math.min(this.room, this.size < MANY ? this.#batch : BATCH_MIN)
    return Math.min(count, Math.max(1, Math.floor(READ_MAX_CHARS / this.largestChars)))
  }

  /** Entries have come after a pause. */
  awake(): void {
    this.#batch = BATCH_MIN
  }

  /** A read was full: while its entries are handled at once, the reads grow. */
  readFully(): void {
    if (this.size <= this.#batch) this.#batch = Math.min(BATCH_MAX, 2 * this.#batch)
  }
}

function mostOf({ isBounded, concurrency, outage, instances }: Consumer): number {
  if (isBounded) return concurrency + WAITING_MAX
  return outage === null ? HELD_MAX * instances.length : WAITING_MAX
}
