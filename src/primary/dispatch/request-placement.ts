import type { RouteTable } from '../http/route-table.ts'
import type { Lane } from './lane.ts'

export interface PlacementOptions {
  routes: RouteTable
  /** How many regular lanes there are when all are up. */
  lanesWanted: number
  /** True for a plugin that may have ended a lane. */
  isConfined: (plugin: string) => boolean
  /** True for a plugin that has worked without harm. */
  isKnown: (plugin: string) => boolean
  /** True while one lane has to be sheltered. */
  isCrisis: () => boolean
}

/**
 * Decides which lane takes the requests of which plugins, so that a plugin that ends lanes leaves one to the others:
 *
 * - what is under suspicion goes to the probation lane. Until that is up for the first time it goes to the regular lanes, except for the
 *   sheltered one;
 * - the sheltered lane, which is the oldest, takes only plugins that are known to do no harm, for some
 *   seconds after any death, and while lanes die one after the other;
 * - everything else goes to any regular lane.
 */
export class RequestPlacement {
  readonly #options: PlacementOptions

  constructor(options: PlacementOptions) {
    this.#options = options
  }

  /** @param lanes those that take requests */
  place(lanes: readonly Lane[], hasProbationBegun: boolean): void {
    const { routes, lanesWanted, isConfined, isKnown, isCrisis } = this.#options
    const regular = lanes.filter(({ role }) => role === 'regular')
    const sheltered = regular.reduce<Lane | null>(
      (oldest, lane) => (oldest === null || lane.startedMs < oldest.startedMs ? lane : oldest),
      null,
    )
    const hasShelter = lanesWanted > 1 && isCrisis()
    for (const { servedBy, number, plugin } of routes.list()) {
      if (servedBy !== 'lanes') continue
      const confined = isConfined(plugin)
      for (const lane of lanes) {
        const isOpen =
          lane.role === 'probation'
            ? confined || (hasShelter && !known(lane, plugin))
            : confined
              ? !hasProbationBegun && lane !== sheltered
              : !(hasShelter && lane === sheltered) || known(lane, plugin)
        lane.servesRoute[number] = isOpen ? lane.hostsRoute[number]! : 0
      }
    }

    /** Folders that plugins of the primary serve run no code of a plugin. */
    function known({ manifest }: Lane, plugin: string): boolean {
      return isKnown(plugin) || manifest?.plugins[plugin] === undefined
    }
  }
}
