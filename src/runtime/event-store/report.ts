// What the handler of a delivery reports: its progress, chunks of its result.
import type { Queryable } from '../../contracts/db.ts'
import { causality } from '../../core/causality/context.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { Clock } from '../../core/schedule/clock.ts'
import type { HandlerReport } from '../events/delivered-event.ts'
import { ownTransaction, type StoreDatabase } from './database.ts'
import {
  beginChunks,
  CHUNKS_MAX,
  CHUNKS_MAX_LENGTH,
  type ReportPlace,
  writeChunks,
  writeReport,
} from './report-rows.ts'

// Saved before plugins can replace it.
const { stringify: toJson } = JSON

/** Time for which reports are gathered for one commit, milliseconds. */
const GATHER_MS = 50
/** Maximum characters of a chunk, and of a result, as JSON. */
const CHUNK_MAX_LENGTH = 64 << 10
const RESULT_MAX_LENGTH = 64 << 10
const NOTE_MAX_LENGTH = 1000
/** How long the result of an event is kept whose handler has reported, milliseconds. */
const KEPT_MS = 3_600_000

/** Where a thread writes what its handlers report. */
export interface ReportParts {
  clock: Clock
  /** Null without a database that can hold it. */
  database: () => StoreDatabase | null
  /** Resolves when the tables are there. */
  opened: () => Promise<void>
  /** Reports of an event are committed. */
  reported: (eventId: string) => void
  log: (message: string) => void
}

interface Ending {
  result: string | null
  keptMs: number
}

/** The reports of one delivery. */
export class Report implements HandlerReport {
  readonly #parts: ReportParts
  readonly #place: ReportPlace
  /** False once the delivery is no longer its handler's. */
  readonly #isOwn: () => boolean
  #progress = ''
  #chunks: string[] = []
  /** Of the chunks of this attempt, those written included: their lengths, from the first that is kept. */
  readonly #lengths: number[] = []
  #length = 0
  /** Number of the last chunk that is written; -1: not known yet. */
  #lastN = -1
  /** idle ──► gathering ──► writing ──► idle */
  #state: 'idle' | 'gathering' | 'writing' = 'idle'
  #writing: Promise<void> = Promise.resolve()

  constructor(parts: ReportParts, place: ReportPlace, isOwn: () => boolean) {
    if (parts.database() === null) {
      throw new HeddleError(
        'EVENT_BUS_UNAVAILABLE',
        'What a handler reports is kept in the database, and no installed tool db can hold it',
      )
    }
    this.#parts = parts
    this.#place = place
    this.#isOwn = isOwn
  }

  /** @throws EVENT_OPTIONS_INVALID */
  progress(done: number, of: number, note: string | undefined): void {
    const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value) && value >= 0
    if (!isNumber(done) || !isNumber(of) || done > of)
      throw new HeddleError(
        'EVENT_OPTIONS_INVALID',
        `progress takes two numbers, done of all, got ${String(done)} of ${String(of)}`,
      )
    if (note !== undefined && (typeof note !== 'string' || note.length > NOTE_MAX_LENGTH))
      throw new HeddleError('EVENT_OPTIONS_INVALID', `note must be a string of at most ${NOTE_MAX_LENGTH} characters`)
    this.#progress = toJson([done, of, note ?? null])
    this.#schedule()
  }

  /** @throws EVENT_PAYLOAD_INVALID, EVENT_PAYLOAD_TOO_LARGE */
  emit(chunk: unknown): void {
    const json = jsonOf(chunk, 'A chunk', CHUNK_MAX_LENGTH)
    this.#chunks.push(json)
    this.#lengths.push(json.length)
    this.#length += json.length
    while (this.#lengths.length > CHUNKS_MAX || this.#length > CHUNKS_MAX_LENGTH) this.#length -= this.#lengths.shift()!
    // What is not written yet is bounded, too.
    if (this.#chunks.length > this.#lengths.length) {
      const dropped = this.#chunks.length - this.#lengths.length
      this.#chunks.splice(0, dropped)
      this.#dropped += dropped
    }
    this.#schedule()
  }

  /** Chunks that were dropped before they were written. */
  #dropped = 0

  #schedule(): void {
    if (this.#state !== 'idle') return
    this.#state = 'gathering'
    this.#parts.clock.after(GATHER_MS, () => this.#begin()).unref()
  }

  #begin(): void {
    if (this.#state === 'gathering') void this.#write(null)
  }

  #write(end: Ending | null): Promise<void> {
    this.#state = 'writing'
    this.#writing = this.#writing.then(async () => {
      const chunks = this.#chunks.splice(0)
      const dropped = this.#dropped
      this.#dropped = 0
      try {
        if (this.#isOwn()) await this.#commit(chunks, dropped, end)
      } catch (error) {
        this.#parts.log(`What the handler of ${this.#place.eventId} reports was not stored: ${messageOf(error)}`)
      }
      this.#state = 'idle'
      if (this.#chunks.length > 0) this.#schedule()
    })
    return this.#writing
  }

  async #commit(chunks: readonly string[], dropped: number, end: Ending | null): Promise<void> {
    const { database, opened, reported } = this.#parts
    await opened()
    const db = database()!
    let written = this.#lastN
    const work = async (tx: Queryable): Promise<void> => {
      if (this.#lastN < 0) this.#lastN = await beginChunks(tx, this.#place)
      const first = this.#lastN + dropped + 1
      const lastN = first + chunks.length - 1
      await writeChunks(tx, this.#place, chunks, first, lastN + 1 - this.#lengths.length)
      const { result, keptMs } = end ?? { result: null, keptMs: 0 }
      await writeReport(tx, db.dialect, this.#place, { progress: this.#progress, lastN, result, keptMs })
      written = lastN
    }
    // The handler may be in a transaction of its own.
    const commit = () => causality.exit(() => ownTransaction(db, work))
    await commit().catch(() => {
      // What an earlier attempt has written meanwhile has taken the numbers.
      this.#lastN = -1
      return commit()
    })
    this.#lastN = written
    reported(this.#place.eventId)
  }

  /**
   * The handler has returned: everything is written, and the result.
   * @param resultMs how long it is kept; undefined: as long as reports are
   */
  end(value: unknown, resultMs: number | undefined): Promise<void> {
    let result: string | null = null
    try {
      if (value !== undefined) result = jsonOf(value, 'The result', RESULT_MAX_LENGTH)
    } catch (error) {
      // What it has done is done: it is not tried again because of its answer.
      this.#parts.log(`The result of ${this.#place.eventId} is not kept: ${messageOf(error)}`)
    }
    return this.#write({ result, keptMs: resultMs ?? KEPT_MS })
  }

  failed(): Promise<void> {
    return this.#state === 'gathering' ? this.#write(null) : this.#writing
  }
}

function jsonOf(value: unknown, what: string, most: number): string {
  let json: string | undefined
  try {
    json = toJson(value)
  } catch (error) {
    throw new HeddleError('EVENT_PAYLOAD_INVALID', `${what} is no JSON: ${messageOf(error)}`)
  }
  if (json === undefined) throw new HeddleError('EVENT_PAYLOAD_INVALID', `${what} is no JSON: ${typeof value}`)
  if (json.length > most)
    throw new HeddleError(
      'EVENT_PAYLOAD_TOO_LARGE',
      `${what} has ${json.length} characters of JSON; ${most} are allowed`,
    )
  return json
}
