// Moves delayed rows to the end of the order when they are due.
import { messageOf } from '../../core/errors/description.ts'
import type { Clock, Timer } from '../../core/schedule/clock.ts'
import type { Settler } from './settler.ts'
import type { SqlStore } from './sql-store.ts'

/** Interval of the checks for a changed clock, milliseconds. */
const LOOK_MS = 250
/** Smaller changes of the clock are corrections, milliseconds. */
const JUMP_MS = 1000
/** How far two threads' readings of the clock may be apart, milliseconds. */
const MARGIN_MS = 100
/** Maximum number of rows of earlier processes whose new times move with the clock. */
const NOTED_MAX = 10_000

export interface DueRowsParts {
  store: SqlStore
  settler: Settler
  clock: Clock
  report: (message: string) => void
}

/**
 * ```
 *   waiting ──► moving     the first row is due: the settler moves all due rows
 *      ▲──────────┘        they are moved: it waits for the next due row
 * ```
 * `closed` before the store is open, `ended` when the process stops.
 */
type State = 'closed' | 'waiting' | 'moving' | 'ended'

export class DueRows {
  readonly #parts: DueRowsParts
  #state: State = 'closed'
  #firstMs = Number.POSITIVE_INFINITY
  #timer: Timer | undefined
  #lookTimer: Timer | undefined
  /** Last row of earlier processes. */
  #lastBefore = 0
  /** Both clocks and the last row at the last look. */
  #seen = { nowMs: 0, appMs: 0, last: 0 }
  #isLooking = false
  /** Rows of earlier processes with times set by this process. */
  readonly #noted = new Set<number>()

  constructor(parts: DueRowsParts) {
    this.#parts = parts
  }

  /** @param last the last row of earlier processes */
  async open(last: number): Promise<void> {
    const { clock } = this.#parts
    this.#lastBefore = last
    this.#seen = { nowMs: clock.nowMs(), appMs: clock.appMs(), last }
    this.#state = 'waiting'
    await this.first()
    this.#lookTimer = clock.every(LOOK_MS, () => void this.#look()).unref()
  }

  /** True while due rows are being moved, and while rows that have come are due. */
  get isBusy(): boolean {
    return this.#state === 'moving' || (this.#state === 'waiting' && this.#firstMs <= this.#parts.clock.nowMs())
  }

  /** Called when a row waits for a new time, milliseconds since the epoch. */
  noted(seq: number, dueMs: number): void {
    if (seq <= this.#lastBefore && this.#noted.size < NOTED_MAX) this.#noted.add(seq)
    this.add(dueMs)
  }

  /** Waits for a row. @param dueMs milliseconds since the epoch */
  add(dueMs: number): void {
    if (dueMs >= this.#firstMs) return
    this.#firstMs = dueMs
    this.#wait()
  }

  /** Other members may have stored delayed rows. */
  async again(): Promise<void> {
    if (this.#state === 'waiting') await this.first()
  }

  /** Finds the next due row, after all due rows were moved. */
  async first(): Promise<void> {
    this.#firstMs = Number.POSITIVE_INFINITY
    const firstMs = await this.#parts.store.firstDueMs()
    if (this.#state === 'ended') return
    this.#state = 'waiting'
    // Others may have come meanwhile.
    this.#firstMs = Math.min(this.#firstMs, firstMs)
    this.#wait()
  }

  end(): void {
    const { clock } = this.#parts
    this.#state = 'ended'
    clock.cancel(this.#timer)
    clock.cancel(this.#lookTimer)
  }

  #wait(): void {
    if (this.#state !== 'waiting') return
    const { clock } = this.#parts
    clock.cancel(this.#timer)
    if (this.#firstMs === Number.POSITIVE_INFINITY) return
    const ms = Math.max(0, this.#firstMs - clock.nowMs())
    this.#timer = clock.due(ms, () => void this.#move(), JUMP_MS).unref()
  }

  async #move(): Promise<void> {
    await this.#look()
    if (this.#state !== 'waiting') return
    const nowMs = this.#parts.clock.nowMs()
    if (nowMs < this.#firstMs) return this.#wait()
    this.#state = 'moving'
    this.#parts.settler.promote(nowMs)
  }

  // ── a changed clock changes no delay ──────────────────────────────────────

  async #look(): Promise<void> {
    if (this.#isLooking || this.#state === 'ended') return
    this.#isLooking = true
    const { store, clock, report } = this.#parts
    try {
      const last = await store.lastSeq()
      const [nowMs, appMs] = [clock.nowMs(), clock.appMs()]
      const seen = this.#seen
      const jumpMs = nowMs - seen.nowMs - (appMs - seen.appMs)
      if (Math.abs(jumpMs) >= JUMP_MS) {
        const ms = 2 * Math.round(jumpMs / 2)
        const sinceMs = seen.nowMs + ms - MARGIN_MS
        await store.moveDue({
          ms,
          after: this.#lastBefore,
          noted: [...this.#noted],
          known: seen.last,
          sinceMs,
          untilMs: nowMs + MARGIN_MS,
        })
      }
      this.#seen = { nowMs, appMs, last }
      if (Math.abs(jumpMs) >= JUMP_MS && this.#state === 'waiting') await this.first()
    } catch (error) {
      report(`Rows that wait for their time cannot be read, it is tried again: ${messageOf(error)}`)
    } finally {
      this.#isLooking = false
    }
  }
}
