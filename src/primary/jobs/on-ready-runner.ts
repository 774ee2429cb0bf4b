// `onReady` of the lanes' plugins, once in the process.
import type { BlackBox } from '../../contracts/registry.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { Lane, LaneState } from '../dispatch/lane.ts'
import { POISON_DEATHS } from '../events/hub.ts'

/** A lane that is to leave may finish an `onReady` that takes no longer than this, milliseconds. */
export const READY_GRACE_MS = 5_000
/** The death of a lane counts against an `onReady` that has begun within this, milliseconds: one that goes on is a consumer, and meets the deaths of others. */
const COUNTED_MS = 60_000

/** Lanes in these states run it. */
const MAY_BEGIN: readonly LaneState[] = ['starting', 'ready']

/**
 * Runs `onReady` of the lanes' plugins: once for the whole process, in one lane, also for a plugin that a reload brings. An `onReady`
 * that has not ended when its lane ends is run again in another lane.
 */
export class OnReadyRunner {
  readonly #lanes: () => readonly Lane[]
  readonly #log: (message: string) => void
  /** Each `onReady` that runs, by plugin. `sinceMs`: by `steadyMs`. */
  readonly #running = new Map<string, { readonly lane: Lane; readonly sinceMs: number }>()
  /** Plugins whose `onReady` has ended, or is not run any more. */
  readonly #done = new Set<string>()
  /** Lanes that died while they ran it, by plugin. */
  readonly #deaths = new Map<string, number>()

  /** @param lanes the regular lanes */
  constructor(lanes: () => readonly Lane[], log: (message: string) => void) {
    this.#lanes = lanes
    this.#log = log
  }

  /** Begins the `onReady` of all plugins that no lane has run or is running. */
  run(): void {
    for (const lane of this.#lanes()) {
      if (lane.manifest === null || !MAY_BEGIN.includes(lane.state)) continue
      for (const [plugin, { status }] of Object.entries(lane.manifest.plugins)) {
        if (status !== 'OK' || this.#done.has(plugin) || this.#running.has(plugin)) continue
        this.#running.set(plugin, { lane, sinceMs: steadyMs() })
        lane.post({ type: 'ready', plugin })
      }
    }
  }

  /** The `onReady` of a plugin has ended. */
  done(plugin: string): void {
    this.#done.add(plugin)
    this.#running.delete(plugin)
  }

  /** True while a lane runs an `onReady` that it should be let finish. */
  isBusy(lane: Lane): boolean {
    const begunMs = steadyMs() - READY_GRACE_MS
    return [...this.#running.values()].some(({ lane: at, sinceMs }) => at === lane && sinceMs > begunMs)
  }

  /**
   * A lane is gone: another lane runs what it had not finished, except for plugins that kill lanes.
   * @param blackBox null when it was told to end
   */
  laneGone(lane: Lane, blackBox: BlackBox | null): void {
    for (const [plugin, { lane: at, sinceMs }] of this.#running) {
      if (at !== lane) continue
      this.#running.delete(plugin)
      if (blackBox !== null && steadyMs() - sinceMs < COUNTED_MS) this.#countDeath(plugin, blackBox)
    }
    this.run()
  }

  #countDeath(plugin: string, { guilty }: BlackBox): void {
    // Somebody else is proved to have crashed the lane.
    if (guilty?.plugin != null && guilty.plugin !== plugin) return
    const deaths = (this.#deaths.get(plugin) ?? 0) + 1
    this.#deaths.set(plugin, deaths)
    if (deaths < POISON_DEATHS) return
    this.#done.add(plugin)
    this.#log(`${deaths} lanes died while they ran onReady of ${plugin}: it is not run again`)
  }
}
