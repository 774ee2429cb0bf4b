import type { DeadLetter, DeadLetterPage } from '../../contracts/event-bus.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import { isPlainObject } from '../../core/collections/plain-object.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { cutText } from '../../core/errors/description.ts'
import { DEAD_STREAM, EVENT_PREFIX } from '../../runtime/streams/keys.ts'
import { SCRIPTS } from '../../runtime/streams/scripts.ts'
import type { RedisArgument, RedisClient } from '../../stores/redis/client.ts'
import {
  DEAD_LETTERS_MAX_BYTES,
  DEAD_LETTERS_PAGE_BYTES,
  type DeadLetters,
  LetterPage,
} from '../events/dead-letters.ts'

/** Letters that are kept, approximately; then the oldest are dropped. */
export const DEAD_LETTERS_STREAM_MAX = 10_000
/** Letters that are read in one step: each may have a MiB. */
const STEP = 50
/** A letter of an older release may have an error of any length. */
const LISTED_ERROR_MAX_LENGTH = 8192

/** A delivery that failed for good. */
export interface StreamLetter {
  /** JSON with `id`, `payload_keys` and `request_id` among others. */
  readonly envelope: RedisArgument
  /** JSON. */
  readonly payload: RedisArgument
  readonly event: string
  /** The group as the server knows it: `groupOf` or `broadcastGroupOf`. */
  readonly group: string
  readonly subscriber: string
  readonly error: string
  readonly attempts: number
  /** The report of the last death, when threads died of the delivery. */
  readonly blackBox: BlackBox | null
}

/** Where the failed delivery is pending. */
export interface FailedEntry {
  readonly stream: string
  readonly group: string
  readonly entryId: string
}

interface Options {
  /** Told how many old letters were dropped for new ones. */
  onCut: (letters: number) => void
  /** Default DEAD_LETTERS_STREAM_MAX. */
  max?: number
  /** EVENT_BUS_MAX_DEAD_BYTES. */
  maxBytes?: number
}

type Reply = [entryId: string, fields: string[]]

/** The dead letters of all replicas, in a stream of their own. Entries that are no letters are left alone and not shown. */
export class StreamDeadLetters implements DeadLetters {
  readonly #redis: RedisClient
  readonly #options: Options

  constructor(redis: RedisClient, options: Options) {
    this.#redis = redis
    this.#options = options
  }

  /**
   * Stores a letter.
   * @param entry acknowledged in the same step. With it the call can be repeated when its outcome is unknown: an entry that is
   *   acknowledged already gets no second letter. Without it a repeated call may store the letter twice.
   * @returns the letter's id; null when the entry had been acknowledged before
   */
  async add(letter: StreamLetter, entry?: FailedEntry): Promise<string | null> {
    const { max = DEAD_LETTERS_STREAM_MAX, maxBytes = DEAD_LETTERS_MAX_BYTES } = this.#options
    const fields = ['e', letter.envelope, 'p', letter.payload, 'event', letter.event, 'group', letter.group]
    fields.push('subscriber', letter.subscriber, 'error', letter.error, 'attempts', letter.attempts)
    if (letter.blackBox !== null) fields.push('black_box', JSON.stringify(letter.blackBox))
    const [entryId, cut] = await this.#redis.run<[string, number]>(
      SCRIPTS.addDeadLetter,
      [DEAD_STREAM, entry?.stream ?? DEAD_STREAM],
      [max, maxBytes, entry?.group ?? '', entry?.entryId ?? '', ...fields],
    )
    if (cut > 0) this.#options.onCut(cut)
    return entryId === '' ? null : idOf(entryId)
  }

  async list(wanted: DeadLetterPage = {}): Promise<DeadLetter[]> {
    // A replayed letter is an entry of its event's stream, and nobody is told what becomes of it.
    if (wanted.replayed) return []
    const page = new LetterPage(wanted)
    const before = wanted.before === undefined ? null : entryIdOf(wanted.before)
    if (wanted.before !== undefined && before === null) return []
    let from = before === null ? '+' : `(${before}`
    for (;;) {
      const limits = [from, STEP, DEAD_LETTERS_PAGE_BYTES]
      const replies = await this.#redis.run<Reply[]>(SCRIPTS.listDeadLetters, [DEAD_STREAM], limits)
      const isFull = page.add(replies.flatMap((reply) => listed(reply) ?? []))
      if (isFull || replies.length === 0) return page.oldestFirst()
      from = `(${replies.at(-1)![0]}`
    }
  }

  edit(): never {
    throw new HeddleError(
      'EVENT_OPTIONS_INVALID',
      'Over Redis Streams a dead letter cannot be edited: publish the corrected event, and delete the letter',
    )
  }

  async delete(id: string): Promise<boolean> {
    const entryId = entryIdOf(id)
    return entryId !== null && (await this.#redis.command<number>('xdel', [DEAD_STREAM, entryId])) === 1
  }

  /** Moves a letter back into the stream of its event, for its group alone. False when there is no such letter, or no such group any more. */
  async replay(id: string): Promise<boolean> {
    const entryId = entryIdOf(id)
    if (entryId === null) return false
    return (await this.#redis.run<number>(SCRIPTS.replayDeadLetter, [DEAD_STREAM], [entryId, EVENT_PREFIX])) === 1
  }
}

const idOf = (entryId: string): string => `dl_${entryId}`

function entryIdOf(id: string): string | null {
  return /^dl_(\d{1,15}-\d{1,15})$/.exec(id)?.[1] ?? null
}

/** An entry's id begins with the server's time. */
const atMsOf = ([entryId]: Reply): number => Number(entryId.split('-')[0])

function fieldsOf([, list]: Reply): Record<string, string | undefined> {
  const fields: Record<string, string> = Object.create(null)
  for (let at = 0; at + 1 < list.length; at += 2) fields[list[at]!] = list[at + 1]!
  return fields
}

/** Null for an entry that is no letter. */
function listed(reply: Reply): DeadLetter | null {
  const { e, event, subscriber, error, attempts = '', black_box } = fieldsOf(reply)
  const envelope = objectIn(e)
  if (entryIdOf(idOf(reply[0])) === null || envelope === null || !/^\d{1,9}$/.test(attempts)) return null
  if (event === undefined || subscriber === undefined || error === undefined) return null
  const { id, payload_keys, request_id } = envelope
  if (typeof id !== 'string' || !Array.isArray(payload_keys)) return null
  const blackBox = objectIn(black_box)
  return {
    id: idOf(reply[0]),
    event,
    event_id: id,
    subscriber,
    error: cutText(error, LISTED_ERROR_MAX_LENGTH),
    attempts: Number(attempts),
    ...(blackBox === null ? {} : { black_box: { ...(blackBox as unknown as BlackBox), steps: [] } }),
    payload_keys: payload_keys.map(String),
    timestamp: new Date(atMsOf(reply)).toISOString(),
    request_id: typeof request_id === 'string' ? request_id : null,
  }
}

function objectIn(json: string | undefined): Record<string, unknown> | null {
  if (json === undefined) return null
  try {
    const value: unknown = JSON.parse(json)
    return isPlainObject(value) ? value : null
  } catch {
    return null // No JSON: somebody else's.
  }
}
