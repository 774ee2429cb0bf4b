import type { Origin } from '../../core/causality/context.ts'
import type { Lane } from '../dispatch/lane.ts'

/** What a lane has begun counts as seen there until this long after its end: a timer that it left may still run, milliseconds. */
export const AFTERMATH_MS = 1000
/** Lanes are looked at this often, milliseconds. */
const LOOK_MS = 1000
/** After this many looks all counts are halved: what plugins did long ago says little. */
const LOOKS_KEPT = 1200
/** A plugin that was seen this often in lanes that went on is known not to end them at once. */
const KNOWN_AFTER = 3

/** Handlers, each by a text of its own. */
export type Handlers = ReadonlyMap<string, Origin>

/** How often each handler is seen in lanes that live on: the controls against which its deaths are held. */
export class Sightings {
  readonly #handlersOf: (lane: Lane) => Handlers
  #looks = 0
  readonly #seen = new Map<string, number>()
  readonly #seenOfPlugin = new Map<string, number>()
  /** What was seen at the last look: it counts when the lane is still there at the next. */
  #last = new Map<Lane, Handlers>()
  #timer: NodeJS.Timeout | undefined

  constructor(handlersOf: (lane: Lane) => Handlers) {
    this.#handlersOf = handlersOf
  }

  /** @param lanes those that are to be looked at, at each look */
  start(lanes: () => readonly Lane[], onLook: () => void): void {
    this.#timer = setInterval(() => {
      this.look(lanes())
      onLook()
    }, LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  look(lanes: readonly Lane[]): void {
    const last = this.#last
    this.#last = new Map()
    for (const lane of lanes) {
      const before = last.get(lane)
      if (before !== undefined) this.#count(before)
      this.#last.set(lane, this.#handlersOf(lane))
    }
    if (this.#looks > LOOKS_KEPT) this.#halve()
  }

  #count(handlers: Handlers): void {
    this.#looks++
    const plugins = new Set<string>()
    for (const [key, { plugin }] of handlers) {
      this.#seen.set(key, (this.#seen.get(key) ?? 0) + 1)
      plugins.add(plugin)
    }
    for (const plugin of plugins) this.#seenOfPlugin.set(plugin, (this.#seenOfPlugin.get(plugin) ?? 0) + 1)
  }

  #halve(): void {
    this.#looks /= 2
    for (const [key, seen] of this.#seen) {
      if (seen < 1) this.#seen.delete(key)
      else this.#seen.set(key, seen / 2)
    }
  }

  /** How many handlers were seen. */
  get size(): number {
    return this.#seen.size
  }

  /** How likely a handler is seen in a lane at any moment. Laplace's rule of succession: what was never seen is not impossible. */
  shareOf(key: string): number {
    return ((this.#seen.get(key) ?? 0) + 1) / (this.#looks + 2)
  }

  /** True for a plugin that has worked in lanes that went on. */
  isKnown(plugin: string): boolean {
    return (this.#seenOfPlugin.get(plugin) ?? 0) >= KNOWN_AFTER
  }

  /** A plugin has ended a lane: what it did before says no more that it does not. */
  forget(plugin: string): void {
    this.#seenOfPlugin.delete(plugin)
  }
}
