// Isolates plugins that are proved to have crashed or blocked a lane, disables those that crash lanes again and again, and places requests accordingly.
import type { LogLevel } from '../../contracts/logger.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import type { StackFrame } from '../../core/errors/places.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Hub } from '../events/hub.ts'
import { pluginIn, withLine } from '../flight/work.ts'
import type { Routing } from '../http/routes.ts'
import { DeathWindow, type LaneSet } from './lane-set.ts'

/** A plugin is isolated for this long after its last proved crash, milliseconds. */
export const ISOLATION_MS = 60_000
/** A plugin is disabled after this many proved crashes within the window. */
export const CRASHES_MAX = 5
export const CRASH_WINDOW_MS = 60_000
/** How long it is disabled at first. Each further time takes twice as long, up to the longest. */
export const DISABLED_MS = 10_000
export const DISABLED_MAX_MS = 600_000

/**
 * What follows from proof for one plugin. It is forgotten when its isolation ends.
 *
 *      crash, block           5 crashes in 60 s; on trial, 1
 *   ─────────────────▶ isolated ─────────────────────────────▶ disabled
 *   ◀───────────────── on trial ◀─────────────────────────────
 *      60 s without                      its time is over
 */
interface Suspect {
  state: 'isolated' | 'disabled'
  readonly crashes: DeathWindow
  /** How often it was disabled in a row: from the first time on it is on trial. */
  disabledTimes: number
  /** The lane that it has blocked, while it has crashed none. */
  blocked: Lane | null
  /** Ends the state. */
  timer: NodeJS.Timeout | undefined
  /** It needs the probation lane, or will before that lane has left. */
  needsLane: boolean
}

/** Why, and until when a plugin is disabled. */
export interface Disabled {
  /** Milliseconds since the epoch. */
  untilMs: number
  reason: string
}

interface IsolationOptions {
  readonly lanes: LaneSet
  readonly routing: Routing
  readonly dispatcher: Dispatcher
  readonly hub: Hub
  /** A plugin is disabled; null when it is tried again. */
  readonly onDisabled: (plugin: string, disabled: Disabled | null) => void
  readonly log: (level: LogLevel, message: string) => void
}

/** The plugins whose requests go to the probation lane, and those that are disabled. */
export class Isolation {
  readonly #suspects = new Map<string, Suspect>()
  readonly #options: IsolationOptions

  constructor(options: IsolationOptions) {
    this.#options = options
  }

  isDisabled(plugin: string): boolean {
    return this.#suspects.get(plugin)?.state === 'disabled'
  }

  /** The stack of a lane that stands still proves who blocks it. */
  blocked(lane: Lane, stack: readonly StackFrame[]): void {
    const plugin = pluginIn(stack, lane.manifest?.files ?? {})
    if (plugin === undefined) return
    const known = this.#suspects.get(plugin)
    // Said at each look while the lane stands still: nothing is placed anew for it.
    if (known !== undefined) return void (known.state === 'isolated' && known.timer?.refresh())
    const suspect = this.#suspectOf(plugin)
    suspect.blocked = lane
    this.#isolate(plugin, suspect)
    this.#options.log('WARNING', `${plugin} blocks lane ${lane.index}: its requests get a lane of their own`)
  }

  /** Isolates the plugin that is proved to have crashed a lane, and disables it when it has crashed too many. */
  recordCrash({ guilty, message }: BlackBox): void {
    if (guilty?.plugin == null) return
    const { plugin, line } = guilty
    const suspect = this.#suspectOf(plugin)
    suspect.blocked = null
    const crashes = suspect.crashes.add(steadyMs())
    this.#isolate(plugin, suspect)
    const isOnTrial = suspect.disabledTimes > 0
    if (!isOnTrial && crashes < CRASHES_MAX) return
    const forMs = Math.min(DISABLED_MAX_MS, DISABLED_MS * 2 ** suspect.disabledTimes)
    const count = isOnTrial ? 'another lane' : `${crashes} lanes in ${CRASH_WINDOW_MS / 1000} s`
    this.disable(plugin, forMs, `its handlers crashed ${count}; last: ${withLine(message, line)}`)
  }

  /** Disables a plugin, unless it is. */
  disable(plugin: string, forMs: number, why: string): void {
    const suspect = this.#suspectOf(plugin)
    if (suspect.state === 'disabled') return
    suspect.disabledTimes++
    this.#enter(suspect, 'disabled', forMs, () => {
      suspect.state = 'isolated'
      this.#isolate(plugin, suspect)
      this.#options.onDisabled(plugin, null)
    })
    const untilMs = Date.now() + forMs
    this.#options.onDisabled(plugin, { untilMs, reason: `Disabled until ${new Date(untilMs).toISOString()}: ${why}` })
  }

  /** The code of the plugins is new. */
  reset(): void {
    for (const [plugin, { state, timer }] of this.#suspects) {
      clearTimeout(timer)
      if (state === 'disabled') this.#options.onDisabled(plugin, null)
    }
    this.#suspects.clear()
    this.#changed()
  }

  #suspectOf(plugin: string): Suspect {
    let suspect = this.#suspects.get(plugin)
    if (suspect === undefined) {
      const crashes = new DeathWindow(CRASH_WINDOW_MS)
      suspect = { state: 'isolated', crashes, disabledTimes: 0, blocked: null, timer: undefined, needsLane: true }
      this.#suspects.set(plugin, suspect)
    }
    return suspect
  }

  /** From now on for a minute, unless it is disabled. */
  #isolate(plugin: string, suspect: Suspect): void {
    if (suspect.state === 'disabled') return
    this.#enter(suspect, 'isolated', ISOLATION_MS, () => {
      this.#suspects.delete(plugin)
      this.#changed()
    })
  }

  #enter(suspect: Suspect, state: Suspect['state'], forMs: number, over: () => void): void {
    clearTimeout(suspect.timer)
    suspect.state = state
    suspect.needsLane = state === 'isolated' || forMs <= ISOLATION_MS
    suspect.timer = setTimeout(over, forMs).unref()
    this.#changed()
  }

  #changed(): void {
    this.#options.lanes.probation.want([...this.#suspects.values()].some(({ needsLane }) => needsLane))
    this.placeRequests()
  }

  /**
   * Decides which lanes serve which routes: isolated plugins have the probation lane alone, all others the regular lanes. Until the probation lane is
   * up, a plugin that has only blocked a lane keeps that one: it may have computed for a moment, and costs no other lane.
   */
  placeRequests(): void {
    const { lanes, routing, dispatcher, hub } = this.#options
    const { serving } = lanes
    const hasProbation = serving.some(({ role }) => role === 'probation')
    for (const { servedBy, number, plugin } of routing.table.list()) {
      if (servedBy !== 'lanes') continue
      const suspect = this.#suspects.get(plugin)
      const blocked = hasProbation ? null : suspect?.blocked
      for (const lane of serving) {
        const isItsLane = (lane.role === 'probation') === (suspect !== undefined) || lane === blocked
        lane.servesRoute[number] = isItsLane && lane.hostsRoute[number] === 1 ? 1 : 0
      }
    }
    dispatcher.setLanes(serving)
    hub.subscribersChanged()
  }
}
