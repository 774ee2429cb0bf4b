// The dead letters of all replicas, in the store.
import type { DeadLetter, DeadLetterPage, LetterReplay } from '../../contracts/event-bus.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import { cutText } from '../../core/errors/description.ts'
import { isPlainObject } from '../../core/schemas/standard-schema.ts'
import { splitKeys } from '../../runtime/events/publication.ts'
import {
  ASIDE_PREFIX,
  compareEntryIds,
  DEAD_STREAM,
  EDITED,
  placeIn,
  placeOf,
  placesOf,
  REPLAYS,
  REPLAYS_MAX,
  streamOf,
} from '../../runtime/streams/keys.ts'
import { SCRIPTS } from '../../runtime/streams/stream-commands.ts'
import type { RedisArgument, RedisClient } from '../../stores/redis/client.ts'
import {
  DEAD_LETTERS_MAX_BYTES,
  DEAD_LETTERS_PAGE_BYTES,
  type DeadLetters,
  LetterPage,
} from '../events/dead-letters.ts'
import { freePlace } from './stream-order.ts'

/** Letters that are kept; then the oldest are dropped. */
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
  /** Empty: nothing is acknowledged. */
  readonly entryId: string
  /** The key that the letter holds up; null: none. */
  readonly key: string | null
  /** Entry id of the letter whose replay it was. */
  readonly letter: string | null
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
    const place = entry === undefined || entry.key === null ? '' : placeOf(entry.group, entry.key)
    if (place !== '') fields.push('k', place)
    const [entryId, dropped] = await this.#redis.run<[string, number]>(
      SCRIPTS.addDeadLetter,
      [DEAD_STREAM, entry?.stream ?? DEAD_STREAM, placesOf(letter.event), EDITED, REPLAYS],
      [
        max,
        maxBytes,
        entry?.group ?? '',
        entry?.entryId ?? '',
        entry?.letter ?? '',
        REPLAYS_MAX,
        place,
        letter.error,
        ...fields,
      ],
    )
    if (dropped > 0) this.#options.onCut(dropped)
    return entryId === '' ? null : idOf(entryId)
  }

  async list(wanted: DeadLetterPage = {}): Promise<DeadLetter[]> {
    const page = new LetterPage(wanted)
    const before = wanted.before === undefined ? null : entryIdOf(wanted.before)
    if (wanted.before !== undefined && before === null) return []
    if (wanted.replayed) {
      const replayed = await this.#replayed()
      page.add(replayed.filter(({ id }) => before === null || compareEntryIds(entryIdOf(id)!, before) < 0))
      return page.oldestFirst()
    }
    let from = before === null ? '+' : `(${before}`
    for (;;) {
      const limits = [from, STEP, DEAD_LETTERS_PAGE_BYTES, ASIDE_PREFIX]
      const replies = await this.#redis.run<Reply[]>(SCRIPTS.listDeadLetters, [DEAD_STREAM, EDITED], limits)
      const isFull = page.add(replies.flatMap(([entryId, fields]) => listed(entryId, fieldsOf(fields)) ?? []))
      if (isFull || replies.length === 0) return page.oldestFirst()
      from = `(${replies.at(-1)![0]}`
    }
  }

  /** @returns the youngest letter first */
  async #replayed(): Promise<DeadLetter[]> {
    const outcomes = new Map<string, Partial<LetterReplay>>()
    const letters: DeadLetter[] = []
    // What became of a letter is told after the letter.
    for (const [told, list] of await this.#redis.command<Reply[]>('xrevrange', [REPLAYS, '+', '-'])) {
      const { id = '', outcome, error, letter, ...fields } = fieldsOf(list)
      if (outcome === 'done') outcomes.set(id, { outcome })
      else if (outcome === 'failed') {
        outcomes.set(id, { outcome, error: cutText(error ?? '', LISTED_ERROR_MAX_LENGTH), letter: idOf(letter ?? '') })
      } else {
        const shown = listed(id, { ...fields, error })
        const at = new Date(atMsOf(told)).toISOString()
        if (shown !== null) letters.push({ ...shown, replay: { at, outcome: 'running', ...outcomes.get(id) } })
      }
    }
    return letters.sort((a, b) => compareEntryIds(entryIdOf(b.id)!, entryIdOf(a.id)!))
  }

  async payload(id: string): Promise<string | null> {
    const letter = await this.#letter(id)
    if (letter === null) return null
    const edited = await this.#redis.command<string | null>('hget', [EDITED, `p${letter.entryId}`])
    return edited ?? letter.fields.p ?? null
  }

  async edit(id: string, json: string, keys: string): Promise<boolean> {
    const letter = await this.#letter(id)
    const envelope = objectIn(letter?.fields.e)
    if (letter === null || envelope === null) return false
    const edited = JSON.stringify({ ...envelope, payload_keys: splitKeys(keys) })
    const args = [letter.entryId, edited, json]
    return (await this.#redis.run<number>(SCRIPTS.editDeadLetter, [DEAD_STREAM, EDITED], args)) === 1
  }

  /** What waits for it goes on. */
  async delete(id: string): Promise<boolean> {
    const letter = await this.#letter(id)
    if (letter === null) return false
    const { entryId, fields } = letter
    const place = placeIn(fields.k)
    const isDeleted =
      fields.event === undefined || place === null
        ? (await this.#redis.command<number>('xdel', [DEAD_STREAM, entryId])) === 1
        : await freePlace(this.#redis, { event: fields.event, ...place, holder: `L${entryId}`, letter: entryId })
    // Should this fail, it takes a little memory.
    await this.#redis.command('hdel', [EDITED, `e${entryId}`, `p${entryId}`]).catch(() => {})
    return isDeleted
  }

  /** Moves a letter back into the stream of its event, for its group alone. False when there is no such letter, or no such group any more. */
  async replay(id: string): Promise<boolean> {
    const letter = await this.#letter(id)
    if (letter === null) return false
    const { entryId, fields } = letter
    const { event, group } = fields
    if (event === undefined || group === undefined) return false
    const keys = [DEAD_STREAM, streamOf(event), placesOf(event), EDITED, REPLAYS]
    return (await this.#redis.run<number>(SCRIPTS.replayDeadLetter, keys, [entryId, group, REPLAYS_MAX])) === 1
  }

  async #letter(id: string): Promise<{ entryId: string; fields: Fields } | null> {
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

/** An entry's id begins with the server's time. */
const atMsOf = (entryId: string): number => Number(entryId.split('-')[0])

type Fields = Readonly<Record<string, string | undefined>>

function fieldsOf(list: readonly string[]): Fields {
  const fields: Record<string, string> = Object.create(null)
  for (let at = 0; at + 1 < list.length; at += 2) fields[list[at]!] = list[at + 1]!
  return fields
}

/** Null for an entry that is no letter. */
function listed(entryId: string, fields: Fields): DeadLetter | null {
  const { e, edited, event, subscriber, error, attempts = '', black_box, k, waiting } = fields
  const envelope = objectIn(e)
  if (entryIdOf(idOf(entryId)) === null || envelope === null || !/^\d{1,9}$/.test(attempts)) return null
  if (event === undefined || subscriber === undefined || error === undefined) return null
  const { id, payload_keys, request_id } = envelope
  if (typeof id !== 'string' || !Array.isArray(payload_keys)) return null
  const keys = payload_keys.map(String)
  const editedKeys = objectIn(edited)?.payload_keys
  const blackBox = objectIn(black_box)
  const place = placeIn(k)
  return {
    id: idOf(entryId),
    event,
    event_id: id,
    subscriber,
    error: cutText(error, LISTED_ERROR_MAX_LENGTH),
    attempts: Number(attempts),
    ...(blackBox === null ? {} : { black_box: { ...(blackBox as unknown as BlackBox), steps: [] } }),
    ...(place === null ? {} : { parked: true }),
    ...(place === null || waiting === undefined ? {} : { key: place.key, waiting: Number(waiting) }),
    ...(Array.isArray(editedKeys) ? { original_keys: keys } : {}),
    payload_keys: Array.isArray(editedKeys) ? editedKeys.map(String) : keys,
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
    return null // No JSON: somebody else's.
  }
}
