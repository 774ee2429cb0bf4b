// Events that processes may have died with.
import type { Clock } from '../../core/schedule/clock.ts'
import { until } from '../../core/schedule/waiting.ts'
import type { Hub } from '../events/hub.ts'
import { POISON_DEATHS } from '../events/quarantine.ts'
import type { KnownGroups } from './known-groups.ts'
import type { Settler } from './settler.ts'
import { PAGE_ROWS, type StoredRow } from './sql-log.ts'
import { newDelivery, type StoredEvents } from './stored-events.ts'

/** How many events are tried together, by the deaths that were noted of the worst of them. One that is tried alone dies alone. */
const TRIED_TOGETHER = [PAGE_ROWS, 16, 1]
/** An event that has not ended by then, and did not end the process, does not hold up the others, milliseconds. */
const TRIED_MS = 10_000

/** An event that so many processes have died with is tried with few others from then on. */
const SUSPICIOUS_DEATHS = 3

interface TrialOptions {
  hub: Hub
  clock: Clock
  events: StoredEvents
  settler: Settler
  groups: KnownGroups
  /** It is known at which deaths of this machine's processes an event was in flight. */
  areDeathsKnown: boolean
  /** False when no process can have died of the event. */
  isUnderSuspicion: (stored: StoredRow) => boolean
  deliver: (rows: readonly StoredRow[]) => void
  /** True when this process ends. */
  isEnding: () => boolean
}

/**
 * Delivers what was read from the log. Events that processes may have died of are tried a few at a time. Their death is noted first, so that the
 * process may die of it and the next one knows: it tries fewer of those together, in the end each alone. The third death makes a letter.
 */
export class Trials {
  readonly #options: TrialOptions
  /** Up to where the log had events each time that a process ended without order. */
  uncleanEnds: readonly number[] = []

  constructor(options: TrialOptions) {
    this.#options = options
  }

  /**
   * Resolves when the next page may be delivered.
   * @param rows in their order
   * @param isStale true when some of these rows are not as they were read, or something has come that goes before them
   * @returns those that were not delivered for that: they are to be read again
   */
  async run(
    rows: readonly StoredRow[],
    isStale: (rows: readonly StoredRow[]) => boolean,
  ): Promise<readonly StoredRow[]> {
    let left = rows
    while (left.length > 0 && !this.#options.isEnding()) {
      const batch = left.some(this.#isSuspicious) ? batchOf(left) : left
      if (isStale(left) || !(await this.#try(batch, () => isStale(left)))) return left
      left = left.slice(batch.length)
    }
    return []
  }

  /** Processes have died too often while it was there: perhaps of it. */
  readonly #isSuspicious = (stored: StoredRow): boolean => {
    const { areDeathsKnown, isUnderSuspicion } = this.#options
    const { seq, recovered = 0 } = stored.row
    const ends = this.uncleanEnds.filter((last) => Number(seq) <= last).length
    // Of the deaths of other processes nobody here knows more. Of this one's, the guardian has not seen what had begun long before.
    const deaths = Number(recovered) + (areDeathsKnown ? Math.max(0, ends - SUSPICIOUS_DEATHS) : ends)
    return deaths >= SUSPICIOUS_DEATHS && isUnderSuspicion(stored)
  }

  /** @returns false when they were not delivered, since they had become stale */
  async #try(batch: readonly StoredRow[], isStale: () => boolean): Promise<boolean> {
    const { settler, deliver, isEnding } = this.#options
    const suspects = batch.filter(this.#isSuspicious)
    if (suspects.length === 0) {
      deliver(batch)
      return true
    }
    const noted = new Map(suspects.map((stored) => [stored, this.#note(stored, 1)]))
    await settler.written()
    if (isStale()) {
      for (const stored of suspects) this.#note(stored, 0)
      return false
    }
    deliver(batch.map((stored) => noted.get(stored) ?? stored))
    const areTried = (): boolean => isEnding() || suspects.every(({ row }) => this.#isTried(Number(row.seq)))
    const { clock } = this.#options
    await until(areTried, clock.steadyMs() + TRIED_MS, { clock })
    return true
  }

  /** True when the event has ended, or has failed and waits for its next attempt. */
  #isTried(seq: number): boolean {
    return this.#options.events.live(seq)?.open.every(({ isTried }) => isTried) ?? true
  }

  /** The event with so many more deaths of each of its deliveries here. */
  #note(stored: StoredRow, deaths: number): StoredRow {
    const { row, left } = stored
    const { hub, groups, settler } = this.#options
    const here = hub.groupsOf(row.event)
    const seq = Number(row.seq)
    const all = left ?? [
      ...here.map((group) => newDelivery(seq, group)),
      ...groups.absentOf(row.event).map((group) => newDelivery(seq, group, false)),
    ]
    for (const each of all)
      settler.settle('waiting', here.includes(each.group) ? { ...each, deaths: each.deaths + deaths } : each)
    return { ...stored, left: all, trial: here }
  }
}

/** As many of the first as may be tried together. */
function batchOf(rows: readonly StoredRow[]): readonly StoredRow[] {
  let size = 0
  let most: number = PAGE_ROWS
  while (size < rows.length) {
    const deaths = Math.max(0, ...(rows[size]!.left ?? []).map((each) => each.deaths))
    // At that many it becomes a letter, and is not tried.
    if (deaths < POISON_DEATHS) most = Math.min(most, TRIED_TOGETHER[deaths]!)
    if (size >= most) break
    size++
  }
  return rows.slice(0, Math.max(1, size))
}
