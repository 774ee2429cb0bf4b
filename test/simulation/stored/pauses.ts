/** Judges from outside whether paused subscribers begin nothing. */
import { Finding } from '../oracle.ts'

/** Another process looks for pauses once a second, and hears of most at once: so long it may not know of one, milliseconds. */
const HEARD_MS = 5000
/** The same where the database refuses some of what it is asked: several looks may fail. */
const HEARD_WITH_FAULTS_MS = 15_000

/** A process, as far as pauses concern it. */
interface Hearer {
  readonly number: number
  readonly startedMs: number
  /** When it last went on after it had stood still. */
  readonly wentOnMs: number
}

/**
 * unknown: somebody changes it, or has not been told whether it was changed.
 */
type Known = { state: 'running' | 'unknown' } | { state: 'paused'; by: Hearer; sinceMs: number }

export class PauseJudge {
  readonly #heardMs: number
  readonly #groups = new Map<string, Known>()
  /** When the database was last away. */
  awayMs = 0

  /** @param hasFaults the database refuses some of what it is asked */
  constructor(hasFaults: boolean) {
    this.#heardMs = hasFaults ? HEARD_WITH_FAULTS_MS : HEARD_MS
  }

  stateOf(group: string): Known['state'] {
    return this.#groups.get(group)?.state ?? 'running'
  }

  changing(group: string): void {
    this.#groups.set(group, { state: 'unknown' })
  }

  /** Somebody was told that it is paused, or resumed. */
  changed(group: string, isPaused: boolean, by: Hearer, nowMs: number): void {
    this.#groups.set(group, isPaused ? { state: 'paused', by, sinceMs: nowMs } : { state: 'running' })
  }

  /** A delivery is handed to a lane. @throws Finding if its process must know that its group is paused */
  begins(id: string, group: string, process: Hearer, nowMs: number): void {
    const known = this.#groups.get(group)
    if (known?.state !== 'paused') return
    const { by, sinceMs } = known
    const says = `${id} was begun for ${group} in process ${process.number}, ${nowMs - sinceMs} ms after that was paused`
    if (process === by) throw new Finding(`${says} there`)
    if (process.startedMs >= sinceMs) throw new Finding(`${says}: it started later`)
    const fromMs = Math.max(sinceMs, process.wentOnMs, this.awayMs)
    if (nowMs - fromMs > this.#heardMs) throw new Finding(`${says} in process ${by.number}`)
  }
}
