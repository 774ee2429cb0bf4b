// Tells other members about commits: one notification for many.

import type { Clock } from '../../core/schedule/clock.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'
import type { CancelAnswer } from '../../runtime/events/cancelling.ts'

/** Channel of the notifications of processes that share a database. */
const CHANNEL = 'heddle_log'
/** Time for which news is gathered for one notification, milliseconds. */
const GATHER_MS = 5
/** With more names than this, the others read all groups. A notification holds 8,000 bytes. */
const NAMES_MAX = 64
/** Subscribers that are held back, of one notification. */
const HELD_MAX = 8
/** Events of one notification that are to run now. */
const RUN_MAX = 8
/** Answers of one notification. */
const ANSWERS_MAX = 32

/** News for the other members. */
export interface News {
  /** Events of these names have been committed; null: of any. */
  events: readonly string[] | null
  /** Time of the first delayed row, milliseconds since the epoch; 0: no new one. */
  dueMs: number
  /** Members or their groups have changed, or a slot is free. */
  members: boolean
  /** Dead letters were replayed or deleted. */
  letters: boolean
  /** Events were taken back. */
  cancels?: boolean
  /** Reports of these events are stored; null: of more. */
  reports?: readonly string[] | null
  /** Subscribers that are to get nothing for some time, milliseconds. */
  held?: readonly [event: string, group: string, ms: number][]
  /** Events that need not wait for their next attempts, at some subscriber or at all. */
  run?: readonly [id: string, group: string | null][]
  /** What members have had of such events. */
  answers?: readonly CancelAnswer[]
}

const EVERYTHING: News & { member?: number } = {
  events: null,
  dueMs: 0,
  members: true,
  letters: true,
  cancels: true,
  reports: null,
}

export interface DoorbellParts {
  database: () => StoreDatabase
  clock: Clock
  /** Number of this member. */
  member: () => number
  onNews: (news: News) => void
}

export class Doorbell {
  readonly #parts: DoorbellParts
  readonly #events = new Set<string>()
  #dueMs = 0
  #members = false
  #deadLetters = false
  #cancels = false
  #answers: CancelAnswer[] = []
  readonly #reports = new Set<string>()
  #held: [string, string, number][] = []
  readonly #run: [string, string | null][] = []
  #isTelling = false
  #stop: (() => void) | null = null

  constructor(parts: DoorbellParts) {
    this.#parts = parts
  }

  /** Listens. Behind a pooler nothing arrives, and the look once a second finds the changes. */
  open(): void {
    this.#stop ??= this.#parts.database().listen?.(CHANNEL, (payload) => this.#hear(payload)) ?? null
  }

  close(): void {
    this.#stop?.()
    this.#stop = null
  }

  events(name: string): void {
    this.#events.add(name)
    this.#tell()
  }

  later(dueMs: number): void {
    this.#dueMs = this.#dueMs === 0 ? dueMs : Math.min(this.#dueMs, dueMs)
    this.#tell()
  }

  members(): void {
    this.#members = true
    this.#tell()
  }

  deadLetters(): void {
    this.#deadLetters = true
    this.#tell()
  }

  cancels(): void {
    this.#cancels = true
    this.#tell()
  }

  answer(answer: CancelAnswer): void {
    this.#answers.push(answer)
    this.#tell()
  }

  heldBack(event: string, group: string, ms: number): void {
    this.#held = [...this.#held.filter(([name, of]) => name !== event || of !== group), [event, group, ms]]
    this.#tell()
  }

  runNow(id: string, group: string | null): void {
    this.#run.push([id, group])
    this.#tell()
  }

  reported(id: string): void {
    this.#reports.add(id)
    this.#tell()
  }

  #tell(): void {
    if (this.#isTelling) return
    this.#isTelling = true
    this.#parts.clock.after(GATHER_MS, () => void this.#send()).unref()
  }

  async #send(): Promise<void> {
    await this.#notify()
    this.#isTelling = false
    const isNew = this.#events.size > 0 || this.#dueMs > 0 || this.#members || this.#deadLetters
    const isMore = [this.#answers, this.#held, this.#run].some(({ length }) => length > 0)
    if (isNew || isMore || this.#cancels || this.#reports.size > 0) this.#tell()
  }

  /** Notifies the others at once that this member leaves. */
  sayLast(): Promise<void> {
    this.#members = true
    return this.#notify()
  }

  async #notify(): Promise<void> {
    const { database, member } = this.#parts
    const news: News & { member: number } = {
      member: member(),
      events: this.#events.size > NAMES_MAX ? null : [...this.#events],
      dueMs: this.#dueMs,
      members: this.#members,
      letters: this.#deadLetters,
      ...(this.#cancels ? { cancels: true } : {}),
      ...(this.#reports.size === 0 ? {} : { reports: this.#reports.size > NAMES_MAX ? null : [...this.#reports] }),
      ...(this.#held.length === 0 ? {} : { held: this.#held.splice(0, HELD_MAX) }),
      ...(this.#run.length === 0 ? {} : { run: this.#run.splice(0, RUN_MAX) }),
      ...(this.#answers.length > 0 ? { answers: this.#answers.splice(0, ANSWERS_MAX) } : {}),
    }
    this.#events.clear()
    this.#reports.clear()
    this.#dueMs = 0
    this.#members = this.#deadLetters = this.#cancels = false
    try {
      await database().execute('SELECT pg_notify($1, $2)', [CHANNEL, JSON.stringify(news)])
    } catch {
      // The others look once a second.
    }
  }

  /** @param payload empty after a reconnect: notifications may have been missed */
  #hear(payload: string): void {
    const news = payload === '' ? EVERYTHING : newsIn(payload)
    if (news !== null && news.member !== this.#parts.member()) this.#parts.onNews(news)
  }
}

/** Returns null if no member has written it. */
function newsIn(payload: string): (News & { member?: number }) | null {
  try {
    const news = JSON.parse(payload) as News & { member?: number }
    return typeof news === 'object' && news !== null ? news : null
  } catch {
    return null
  }
}
