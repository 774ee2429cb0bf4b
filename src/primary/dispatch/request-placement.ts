import type { RouteTable } from '../http/routes.ts'
import { ALWAYS, type Lane, NOT, WHILE_IT_ANSWERS } from './lane.ts'

/** What is known of plugins by the deaths of lanes. */
interface PluginsKnown {
  /** True for a plugin that may have ended a lane. */
  isConfined(plugin: string): boolean
  /** True for a plugin that stands still in the lanes. */
  isStalling(plugin: string): boolean
  /** True for a plugin that has worked without harm. */
  isKnown(plugin: string): boolean
  /** True while one lane has to be sheltered. */
  isCrisis(): boolean
}

/**
 * Decides which lane takes the requests of which plugins, so that a plugin that ends lanes leaves one to the others:
 *
 * - what is under suspicion goes to the probation lane. Until that is up for the first time it goes to the regular lanes, except for the
 *   sheltered one;
 * - what stands still in the lanes goes there, too, and to the regular lanes, except for the sheltered one and those that stand by;
 * - the sheltered lane, which is the oldest of those that answer, takes only plugins that are known to do no harm, for some
 *   seconds after any death, and while lanes die one after the other;
 * - everything else goes to any regular lane.
 */
export class RequestPlacement {
  readonly #routes: RouteTable
  readonly #lanesWanted: number
  readonly #plugins: PluginsKnown
  #sheltered: Lane | null = null

  /** @param lanesWanted how many regular lanes there are when all are up */
  constructor(routes: RouteTable, lanesWanted: number, plugins: PluginsKnown) {
    this.#routes = routes
    this.#lanesWanted = lanesWanted
    this.#plugins = plugins
  }

  /** @param lanes those that take requests */
  place(lanes: readonly Lane[], hasProbationBegun: boolean): void {
    const plugins = this.#plugins
    const sheltered = oldestThatAnswers(lanes.filter(({ role }) => role === 'regular'))
    this.#sheltered = sheltered
    const hasShelter = this.#isOneOfMany && plugins.isCrisis()
    for (const { servedBy, number, plugin } of this.#routes.list()) {
      if (servedBy !== 'lanes') continue
      const confined = plugins.isConfined(plugin)
      const stalling = plugins.isStalling(plugin)
      for (const lane of lanes) {
        const isOpen =
          lane.role === 'probation'
            ? confined || stalling || (hasShelter && !known(lane, plugin))
            : confined
              ? !hasProbationBegun && lane !== sheltered
              : stalling
                ? !lane.isStandby && lane !== sheltered
                : !(hasShelter && lane === sheltered) || known(lane, plugin)
        lane.servesRoute[number] = !isOpen || !lane.hostsRoute[number] ? NOT : stalling ? WHILE_IT_ANSWERS : ALWAYS
      }
    }

    /** Folders that plugins of the primary serve run no code of a plugin. */
    function known({ manifest }: Lane, plugin: string): boolean {
      return plugins.isKnown(plugin) || manifest?.plugins[plugin] === undefined
    }
  }

  /** True for a plugin whose events the lane does not get. No lane on demand takes them: where there is one lane, they stay there. */
  isKeptFrom(lane: Lane, plugin: string): boolean {
    return (lane.isStandby || (this.#isOneOfMany && lane === this.#sheltered)) && this.#plugins.isStalling(plugin)
  }

  get #isOneOfMany(): boolean {
    return this.#lanesWanted > 1
  }
}

function oldestThatAnswers(lanes: readonly Lane[]): Lane | null {
  let best: Lane | null = null
  for (const lane of lanes) {
    const isBetter =
      best === null || (lane.responsive === best.responsive ? lane.startedMs < best.startedMs : lane.responsive)
    if (isBetter) best = lane
  }
  return best
}
