// The dead letters of all replicas in Redis.
import type { DeadLetter, DeadLetterPage } from '../../contracts/event-bus.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import { cutText } from '../../core/errors/description.ts'
import { isPlainObject } from '../../core/schemas/standard-schema.ts'
import { decodeEntry } from '../../runtime/redis-streams/entry.ts'
import { DEAD_STREAM, streamOf } from '../../runtime/redis-streams/keys.ts'
import { SCRIPTS } from '../../runtime/redis-streams/stream-commands.ts'
import type { RedisArgument, RedisClient } from '../../stores/redis/client.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { DEAD_LETTERS_MAX_BYTES, DEAD_LETTERS_PAGE_BYTES, DeadLetterCollector } from '../events/dead-letters.ts'

/** Maximum number of dead letters; above it the oldest are dropped. */
const DEAD_LETTERS_STREAM_MAX = 10_000
/** Number of dead letters read in one step: each may have a MiB. */
const STEP = 50
/** Maximum characters of an error: others may have written a longer one. */
const LISTED_ERROR_MAX_LENGTH = 8192

/** A failed delivery as it is stored. */
export interface StreamDeadLetter {
  /** JSON with `id`, `payload_keys`, `request_id` and more. */
  readonly envelope: RedisArgument
  /** JSON. */
  readonly payload: RedisArgument
  readonly event: string
  /** The group's name on the server: `groupOf` or `broadcastGroupOf`. */
  readonly group: string
  readonly subscriber: string
  readonly error: string
  readonly attempts: number
  /** Report of the last crash, if threads died of the delivery. */
  readonly blackBox: BlackBox | null
}

/** Where the failed delivery is pending. */
interface FailedEntry {
  readonly stream: string
  readonly group: string
  /** Empty: nothing is acknowledged. */
  readonly entryId: string
}

interface Options {
  /** Called with the number of old dead letters dropped for new ones. */
  onCut: (deadLetters: number) => void
  /** Default DEAD_LETTERS_STREAM_MAX. */
  max?: number
  /** EVENT_BUS_MAX_DEAD_BYTES. */
  maxBytes?: number
  /** Called before the replay of an event: it is not of what was taken back. */
  onReplay?: (event: EventFrame) => Promise<void>
}

type Reply = [entryId: string, fields: string[]]

/** The dead letters of all replicas, in one stream. Entries that are no dead letters are neither changed nor shown. */
export class StreamDeadLetters {
  readonly #redis: RedisClient
  readonly #options: Options

  constructor(redis: RedisClient, options: Options) {
    this.#redis = redis
    this.#options = options
  }

  /**
   * Stores a dead letter.
   * @param entry acknowledged in the same step. With it a call with an unknown outcome can be repeated: an acknowledged entry gets
   *   no second dead letter. Without it a repeated call may store the dead letter twice.
   * @returns the id of the dead letter; null when the entry had been acknowledged before
   */
  async add(deadLetter: StreamDeadLetter, entry?: FailedEntry): Promise<string | null> {
    const { max = DEAD_LETTERS_STREAM_MAX, maxBytes = DEAD_LETTERS_MAX_BYTES } = this.#options
    const { envelope, payload, event, group, subscriber, error, attempts, blackBox } = deadLetter
    const fields = ['e', envelope, 'p', payload, 'event', event, 'group', group]
    fields.push('subscriber', subscriber, 'error', error, 'attempts', attempts)
    if (blackBox !== null) fields.push('black_box', JSON.stringify(blackBox))
    const [entryId, dropped] = await this.#redis.run<[string, number]>(
      SCRIPTS.addDeadLetter,
      [DEAD_STREAM, entry?.stream ?? DEAD_STREAM],
      [max, maxBytes, entry?.group ?? '', entry?.entryId ?? '', ...fields],
    )
    if (dropped > 0) this.#options.onCut(dropped)
    return entryId === '' ? null : idOf(entryId)
  }

  /** @returns the oldest first, without replayed ones */
  async list(wanted: DeadLetterPage = {}): Promise<DeadLetter[]> {
    const page = new DeadLetterCollector(wanted)
    const before = wanted.before === undefined ? null : entryIdOf(wanted.before)
    if (wanted.replayed || (wanted.before !== undefined && before === null)) return []
    let from = before === null ? '+' : `(${before}`
    for (;;) {
      const limits = [from, STEP, DEAD_LETTERS_PAGE_BYTES]
      const replies = await this.#redis.run<Reply[]>(SCRIPTS.listDeadLetters, [DEAD_STREAM], limits)
      const isFull = page.add(replies.flatMap(([entryId, fields]) => listed(entryId, fieldsOf(fields)) ?? []))
      if (isFull || replies.length === 0) return page.oldestFirst()
      from = `(${replies.at(-1)![0]}`
    }
  }

  async payload(id: string): Promise<string | null> {
    return (await this.#deadLetter(id))?.fields.p ?? null
  }

  async delete(id: string): Promise<boolean> {
    const entryId = entryIdOf(id)
    return entryId !== null && (await this.#redis.command<number>('xdel', [DEAD_STREAM, entryId])) === 1
  }

  /** Moves a dead letter back into the stream of its event, for its group alone. False if the dead letter or its group is gone. */
  async replay(id: string): Promise<boolean> {
    const deadLetter = await this.#deadLetter(id)
    if (deadLetter === null) return false
    const { entryId, fields } = deadLetter
    const { event, group } = fields
    if (event === undefined || group === undefined) return false
    const decoded = decodeEntry(event, ['e', fields.e ?? '', 'p', fields.p ?? ''])
    if (typeof decoded === 'object') await this.#options.onReplay?.(decoded.frame)
    const keys = [DEAD_STREAM, streamOf(event)]
    return (await this.#redis.run<number>(SCRIPTS.replayDeadLetter, keys, [entryId, group])) === 1
  }

  async #deadLetter(id: string): Promise<{ entryId: string; fields: Fields } | null> {
    const entryId = entryIdOf(id)
    if (entryId === null) return null
    const [entry] = await this.#redis.command<Reply[]>('xrange', [DEAD_STREAM, entryId, entryId])
    return entry === undefined ? null : { entryId, fields: fieldsOf(entry[1]) }
  }
}

const idOf = (entryId: string): string => `dl_${entryId}`

function entryIdOf(id: string): string | null {
  return /^dl_(\d{1,15}-\d{1,15})$/.exec(id)?.[1] ?? null
}

/** The time of an entry: its id begins with the server's time. */
const atMsOf = (entryId: string): number => Number(entryId.split('-')[0])

type Fields = Readonly<Record<string, string | undefined>>

function fieldsOf(list: readonly string[]): Fields {
  const fields: Record<string, string> = Object.create(null)
  for (let at = 0; at + 1 < list.length; at += 2) fields[list[at]!] = list[at + 1]!
  return fields
}

/** Null for an entry that is no dead letter. */
function listed(entryId: string, fields: Fields): DeadLetter | null {
  const { e, event, subscriber, error, attempts = '', black_box } = fields
  const envelope = objectIn(e)
  if (entryIdOf(idOf(entryId)) === null || envelope === null || !/^\d{1,9}$/.test(attempts)) return null
  if (event === undefined || subscriber === undefined || error === undefined) return null
  const { id, payload_keys, request_id } = envelope
  if (typeof id !== 'string' || !Array.isArray(payload_keys)) return null
  const blackBox = objectIn(black_box)
  return {
    id: idOf(entryId),
    event,
    event_id: id,
    subscriber,
    error: cutText(error, LISTED_ERROR_MAX_LENGTH),
    attempts: Number(attempts),
    ...(blackBox === null ? {} : { black_box: { ...(blackBox as unknown as BlackBox), steps: [] } }),
    payload_keys: payload_keys.map(String),
    timestamp: new Date(atMsOf(entryId)).toISOString(),
    request_id: typeof request_id === 'string' ? request_id : null,
  }
}

function objectIn(json: string | undefined): Record<string, unknown> | null {
  if (json === undefined) return null
  try {
    const value: unknown = JSON.parse(json)
    return isPlainObject(value) ? value : null
  } catch {
    return null // Not JSON: foreign data.
  }
}
