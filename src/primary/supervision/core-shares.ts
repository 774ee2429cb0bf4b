// Which threads are starved: they get too little of the cores, and no limit counts the time for which they wait.
import { steadyMs } from '../../core/schedule/clock.ts'
import { Reminder } from '../../core/schedule/repeating-task.ts'
import { type ThreadTimes, tasksOf, timesOf } from '../../core/schedule/thread-clock.cjs'
import type { LaneSet, LaneThread } from './lane-set.ts'

/** How often the threads are looked at, milliseconds. */
const LOOK_MS = 5000
/** A thread is starved that has waited for a core for more than this part of the time. */
const STARVED_PART = 0.5
/** Starvation is logged once in this time, milliseconds. */
const TOLD_EVERY_MS = 60_000

/** Looks at the primary and the lanes, and says in the log when they are starved. Knows of none where the system does not say. */
export class CoreShares {
  /** Share of a core that each starved thread got at the last look, by its name. */
  starved: ReadonlyMap<string, number> = new Map()
  /** For how long each thread was starved since the start, milliseconds, by its name; from 0 on. */
  readonly starvedMs = new Map<string, number>()
  readonly #lanes: LaneSet
  readonly #say: (message: string) => void
  readonly #primary: string | null
  readonly #reminder = new Reminder(TOLD_EVERY_MS)
  #last = new Map<object, ThreadTimes>()
  #lookedMs = steadyMs()

  constructor(lanes: LaneSet, say: (message: string) => void) {
    this.#lanes = lanes
    this.#say = say
    const tasks = tasksOf('self')
    this.#primary = tasks === null ? null : `${tasks}/${process.pid}`
  }

  look(nowMs: number): void {
    const passedMs = nowMs - this.#lookedMs
    if (this.#primary === null || passedMs < LOOK_MS) return
    this.#lookedMs = nowMs
    const before = this.#last
    this.#last = new Map()
    const starved = new Map<string, number>()
    const take = (name: string, thread: object, times: ThreadTimes | null): number | null => {
      if (times === null) return null
      this.#last.set(thread, times)
      const share = starvedShare(before.get(thread), times, passedMs)
      if (share !== null) starved.set(name, share)
      this.starvedMs.set(name, (this.starvedMs.get(name) ?? 0) + (share === null ? 0 : passedMs))
      return share
    }
    take('the primary', this, timesOf(this.#primary))
    for (const lane of this.#lanes.all) lane.coreShare = take(nameOf(lane), lane, lane.heartbeat.times())
    this.starved = starved
    if (starved.size === 0 || !this.#reminder.isDue()) return
    const shares = [...starved].map(([name, share]) => `${name} got ${percent(share)}`).join(', ')
    this.#say(
      `Starved: in the last ${Math.round(passedMs / 1000)} s ${shares} of a core. Other threads and processes have the cores; no limit counts the time for which a thread waits for one`,
    )
  }
}

/** @returns the share of a core that the thread got; null when it is not starved */
function starvedShare(before: ThreadTimes | undefined, now: ThreadTimes, passedMs: number): number | null {
  if (before === undefined) return null
  const usedMs = now.cpuMs - before.cpuMs
  const countedMs = now.waitedMs - before.waitedMs
  // A wait that goes on is not counted yet.
  const waitedMs = now.state === 'R' && countedMs === 0 ? passedMs - usedMs : countedMs
  return waitedMs > STARVED_PART * passedMs ? Math.min(1, usedMs / passedMs) : null
}

const nameOf = ({ index, role }: LaneThread): string => (role === 'regular' ? `lane ${index}` : `the ${role} lane`)

const percent = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`
