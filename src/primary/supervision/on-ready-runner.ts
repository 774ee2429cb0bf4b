// `onReady` of the lanes' plugins, once in the process.
import type { BlackBox } from '../../contracts/registry.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { Lane, LaneState } from '../dispatch/lane.ts'
import { POISON_DEATHS } from '../events/hub.ts'

/** A lane that is to leave may finish an `onReady` that takes no longer than this, milliseconds; the others wait no longer for their turn. */
export const READY_GRACE_MS = 5_000
/** The death of a lane counts against an `onReady` that has begun within this, milliseconds: one that goes on is a consumer, and meets the deaths of others. */
const COUNTED_MS = 60_000

/** Lanes in these states run it. */
const MAY_BEGIN: readonly LaneState[] = ['starting', 'ready']

/** Plugins whose `onReady` a lane runs one after another. */
interface Round {
  readonly lane: Lane
  /** The first one is running. */
  readonly plugins: string[]
  /** When that one began, milliseconds since the epoch. */
  sinceMs: number
  /** Lets the next ones begin beside it. */
  timer: NodeJS.Timeout | undefined
}

/**
 * Runs `onReady` of the lanes' plugins: once for the whole process, in one lane, also for a plugin that a reload brings. An `onReady`
 * that has not ended when its lane ends is run again in another lane.
 */
export class OnReadyRunner {
  readonly #lanes: () => readonly Lane[]
  readonly #log: (message: string) => void
  /** Plugins whose `onReady` has ended, or is not run any more. */
  readonly #done = new Set<string>()
  /** Plugins whose `onReady` did not end in time in a lane that was to leave: no lane waits for them again. */
  readonly #endless = new Set<string>()
  /** Lanes that died while they ran it, by plugin. */
  readonly #deaths = new Map<string, number>()
  #rounds: Round[] = []

  /** @param lanes the regular lanes */
  constructor(lanes: () => readonly Lane[], log: (message: string) => void) {
    this.#lanes = lanes
    this.#log = log
  }

  /** Starts the `onReady` of all plugins that no lane has run or is running. */
  run(): void {
    const taken = new Set([...this.#done, ...this.#rounds.flatMap(({ plugins }) => plugins)])
    for (const lane of this.#lanes()) {
      if (lane.manifest === null || !MAY_BEGIN.includes(lane.state)) continue
      const names: string[] = []
      for (const [name, { status }] of Object.entries(lane.manifest.plugins)) {
        if (status !== 'OK' || taken.has(name)) continue
        taken.add(name)
        if (this.#endless.has(name)) this.#begin(lane, [name])
        else names.push(name)
      }
      if (names.length > 0) this.#begin(lane, names)
    }
  }

  #begin(lane: Lane, plugins: string[]): void {
    const round: Round = { lane, plugins, sinceMs: 0, timer: undefined }
    this.#rounds.push(round)
    this.#beginNext(round)
  }

  #beginNext(round: Round): void {
    const { lane, plugins } = round
    round.sinceMs = steadyMs()
    clearTimeout(round.timer)
    round.timer = setTimeout(() => {
      this.#endless.add(plugins[0]!)
      const others = plugins.splice(1)
      if (others.length > 0) this.#begin(lane, others)
    }, READY_GRACE_MS).unref()
    lane.post({ type: 'ready', plugin: plugins[0]! })
  }

  #end(round: Round): void {
    clearTimeout(round.timer)
    this.#rounds.splice(this.#rounds.indexOf(round), 1)
  }

  /** The `onReady` of a plugin has ended in a lane. */
  done(lane: Lane, plugin: string): void {
    this.#done.add(plugin)
    const round = this.#rounds.find((each) => each.lane === lane && each.plugins[0] === plugin)
    if (round === undefined) return
    round.plugins.shift()
    if (round.plugins.length === 0) this.#end(round)
    else this.#beginNext(round)
  }

  /** True while a lane runs an `onReady` that it should be let finish. */
  isBusy(lane: Lane): boolean {
    const begunMs = steadyMs() - READY_GRACE_MS
    return this.#rounds.some(
      ({ lane: at, plugins, sinceMs }) => at === lane && sinceMs > begunMs && !this.#endless.has(plugins[0]!),
    )
  }

  /**
   * A lane is gone: another lane runs what it had not finished, except for plugins that kill lanes.
   * @param blackBox null when it was told to end
   */
  laneGone(lane: Lane, blackBox: BlackBox | null): void {
    const open = this.#rounds.filter((round) => round.lane === lane)
    if (open.length === 0) return
    for (const round of open) {
      const { plugins, sinceMs } = round
      this.#end(round)
      if (blackBox === null) this.#endless.add(plugins[0]!)
      else if (steadyMs() - sinceMs < COUNTED_MS) this.#countDeath(plugins[0]!, blackBox)
    }
    this.run()
  }

  #countDeath(plugin: string, { guilty }: BlackBox): void {
    if (guilty?.evidence === 'stack' && guilty.plugin !== null && guilty.plugin !== plugin) return
    const deaths = (this.#deaths.get(plugin) ?? 0) + 1
    this.#deaths.set(plugin, deaths)
    if (deaths < POISON_DEATHS) return
    this.#done.add(plugin)
    this.#log(`${deaths} lanes died while they ran onReady of ${plugin}: it is not run again`)
  }
}
