import type { Lane } from '../dispatch/lane.ts'
import { DeathWindow } from './death-window.ts'

/** A plugin that may have ended a lane is confined this long after the last time, and one that stands still in the lanes stalls, milliseconds. */
export const CONFINED_MS = 60_000
/** A plugin is confined when it is proved to have ended this many lanes within the window. */
const CONFINED_AFTER = 2
/** With this many deaths of regular lanes within the window, one lane takes only plugins that are known to do no harm. */
const CRISIS_DEATHS = 2
const WINDOW_MS = 60_000
/** After any death, until the lane that takes over has shown that what waited for it does it no harm, milliseconds. */
const SHELTER_MS = 5_000

export interface ConfinementOptions {
  /** Told whether the probation lane is needed. */
  onWanted: (isWanted: boolean) => void
  /** A plugin stands still in the lanes, or does no more. */
  onStalling: (plugin: string, isStalling: boolean) => void
  /** Lanes get other requests from now on. */
  onChange: () => void
}

/** Plugins that are under suspicion: the probation lane alone takes their requests, so that what they do costs nobody else a lane. */
export class Confinement {
  readonly #options: ConfinementOptions
  readonly #timers = new Map<string, NodeJS.Timeout>()
  readonly #stalling = new Map<string, NodeJS.Timeout>()
  readonly #deaths = new DeathWindow(WINDOW_MS)
  readonly #dead = new WeakSet<Lane>()
  #lastDeathMs = Number.NEGATIVE_INFINITY
  readonly #deathsOf = new Map<string, DeathWindow>()

  constructor(options: ConfinementOptions) {
    this.#options = options
  }

  isConfined(plugin: string): boolean {
    return this.#timers.has(plugin)
  }

  /** True for a plugin that stood still in all lanes but one, or in all, shortly before: it does not get the last one. */
  isStalling(plugin: string): boolean {
    return this.#stalling.has(plugin)
  }

  /** A plugin stands still in all lanes but one, or in all. @returns true when that was not known */
  stalls(plugin: string): boolean {
    const known = this.#stalling.get(plugin)
    if (known !== undefined) known.refresh()
    else {
      this.#stalling.set(plugin, setTimeout(() => this.#goesOn(plugin), CONFINED_MS).unref())
      this.#options.onStalling(plugin, true)
      this.#changed()
    }
    return known === undefined
  }

  #goesOn(plugin: string): void {
    clearTimeout(this.#stalling.get(plugin))
    this.#stalling.delete(plugin)
    this.#options.onStalling(plugin, false)
    this.#changed()
  }

  /** A regular lane has died. It counts once. */
  laneDied(lane: Lane, nowMs: number): void {
    if (this.#dead.has(lane)) return
    this.#dead.add(lane)
    this.#lastDeathMs = nowMs
    this.#deaths.add(nowMs)
  }

  /** True while lanes die so often that one of them is kept for what is known to do no harm, and for a while after any death. */
  isCrisis(nowMs: number): boolean {
    return nowMs - this.#lastDeathMs < SHELTER_MS || this.#deaths.count(nowMs) >= CRISIS_DEATHS
  }

  /** A plugin is proved to have ended a lane: again and again, it is confined. */
  blame(plugin: string, nowMs: number): void {
    const deaths = this.#deathsOf.get(plugin) ?? new DeathWindow(WINDOW_MS)
    this.#deathsOf.set(plugin, deaths)
    deaths.add(nowMs)
    if (deaths.size >= CONFINED_AFTER) this.confine(plugin)
  }

  confine(plugin: string): void {
    clearTimeout(this.#timers.get(plugin))
    const isNew = !this.#timers.has(plugin)
    this.#timers.set(plugin, setTimeout(() => this.release(plugin), CONFINED_MS).unref())
    if (isNew) this.#changed()
  }

  release(plugin: string): void {
    clearTimeout(this.#timers.get(plugin))
    if (this.#timers.delete(plugin)) this.#changed()
  }

  /** Releases all: the code of the plugins is new. */
  reset(): void {
    for (const plugin of this.#stalling.keys()) this.#goesOn(plugin)
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#lastDeathMs = Number.NEGATIVE_INFINITY
    this.#deaths.clear()
    this.#deathsOf.clear()
    if (this.#timers.size === 0) return
    this.#timers.clear()
    this.#changed()
  }

  #changed(): void {
    this.#options.onWanted(this.#timers.size + this.#stalling.size > 0)
    this.#options.onChange()
  }
}
