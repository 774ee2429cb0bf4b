// What the handler of a delivery reports: its progress, chunks of its result.
import { causality } from '../../core/causality/context.ts'
import { HeddleError, isAway } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { type Clock, pause } from '../../core/schedule/clock.ts'
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
/** While the database is away, reports are written again after a pause, and given up after some time, milliseconds. */
const AWAY_PAUSE_MS = 250
const AWAY_MAX_MS = 30_000
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
  /** Number of the last chunk that is written; -1: not known. */
  #lastN = -1
  /** Chunks that were dropped before they were written. */
  #dropped = 0
  /** Commits since the last answer, by the number of their last chunk: how much of what is to be written they had. */
  readonly #tries = new Map<number, number>()
  /** Grows with each attempt that reports; null: not known yet. */
  #generation: number | null = null
  /** Something was reported that is not written yet. */
  #isNew = false
  /** A commit has failed that may succeed when it is made again. */
  #hasFailed = false
  /**
   * ```
   *   idle ──► gathering ──► writing ──► idle
   *                             └──────► ended    with the result: nothing is written any more, which would take its place
   * ```
   */
  #state: 'idle' | 'gathering' | 'writing' | 'ended' = 'idle'
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

  #schedule(): void {
    this.#isNew = true
    if (this.#state !== 'idle') return
    this.#state = 'gathering'
    this.#parts.clock.after(GATHER_MS, () => this.#begin()).unref()
  }

  #begin(): void {
    if (this.#state === 'gathering') void this.#write(null)
  }

  #write(end: Ending | null): Promise<void> {
    this.#state = 'writing'
    const writing = this.#writing.then(async () => {
      await this.#commit(end)
      // Another write waits for this one.
      if (writing !== this.#writing) return
      this.#state = end === null ? 'idle' : 'ended'
      if (this.#isNew) this.#schedule()
    })
    this.#writing = writing
    return writing
  }

  /** Until it has succeeded, if the database is away: what was reported is not lost, and the handler's end waits for its result. */
  async #commit(end: Ending | null): Promise<void> {
    const { clock, log, opened, reported } = this.#parts
    const untilMs = clock.steadyMs() + AWAY_MAX_MS
    for (;;) {
      if (!this.#isOwn()) {
        // Else `failed` would wait for it without an end, and block the thread.
        this.#isNew = false
        return
      }
      const chunks = this.#chunks.slice()
      const dropped = this.#dropped
      this.#isNew = false
      try {
        await opened()
        // The handler may be in a transaction of its own.
        const written = await causality.exit(() => this.#store(chunks, dropped, end))
        this.#lastN = written
        this.#tries.clear()
        this.#chunks.splice(0, chunks.length)
        this.#dropped -= dropped
        reported(this.#place.eventId)
        return
      } catch (error) {
        // It may be committed all the same, and an earlier attempt may have taken numbers.
        this.#lastN = -1
        if (!isAway(error) || clock.steadyMs() >= untilMs) {
          if (clock.steadyMs() < untilMs && !this.#hasFailed) {
            this.#hasFailed = true
            continue
          }
          this.#chunks.splice(0, chunks.length)
          this.#tries.clear()
          return log(`What the handler of ${this.#place.eventId} reports was not stored: ${messageOf(error)}`)
        }
        await pause(clock, AWAY_PAUSE_MS)
      }
    }
  }

  async #store(chunks: readonly string[], dropped: number, end: Ending | null): Promise<number> {
    const db = this.#parts.database()!
    const { result, keptMs } = end ?? { result: null, keptMs: 0 }
    return ownTransaction(db, async (tx) => {
      let lastN = this.#lastN
      let written = 0
      if (lastN < 0) {
        const begun = await beginChunks(tx, this.#place, this.#generation)
        lastN = begun.lastN
        if (begun.generation === this.#generation) written = this.#tries.get(lastN) ?? 0
        this.#generation ??= begun.generation + 1
      }
      const left = chunks.slice(Math.max(0, written - dropped))
      const first = lastN + Math.max(0, dropped - written) + 1
      lastN = first + left.length - 1
      this.#tries.set(lastN, dropped + chunks.length)
      const update = { progress: this.#progress, lastN, generation: this.#generation!, result, keptMs }
      // What a process that stood still writes late would take the place of a later handler's.
      if (await writeReport(tx, db.dialect, this.#place, update))
        await writeChunks(tx, this.#place, left, first, lastN + 1 - this.#lengths.length)
      return lastN
    })
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

  async failed(): Promise<void> {
    while (this.#isNew || this.#state === 'writing')
      await (this.#state === 'writing' ? this.#writing : this.#write(null))
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
