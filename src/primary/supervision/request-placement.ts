// Which lanes take the requests of which plugins.

import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { ALWAYS, type Lane, NOT, WHILE_IT_ANSWERS } from '../dispatch/lane.ts'
import type { Hub } from '../events/hub.ts'
import type { LaneSubscribers } from '../events/lane-subscribers.ts'
import type { Routing } from '../http/routes.ts'
import type { Guilt } from './guilt.ts'
import type { LaneSet } from './lane-set.ts'

/** Who hears of it. */
interface PlacementParts {
  readonly routing: Routing
  readonly dispatcher: Dispatcher
  readonly hub: Hub
  readonly laneSubscribers: LaneSubscribers
}

/**
 * Decides which lane takes the requests of which plugins, so that a plugin that ends lanes leaves one to the others:
 *
 * - the plugins that are confined go to the probation lane. Until that is up for the first time they go to the regular lanes, except for
 *   the sheltered one;
 * - those that stand still in the lanes go there, too, and to the regular lanes, except for the sheltered one and those that stand by;
 * - the sheltered lane, which is the oldest of those that answer, takes only plugins that are known to do no harm, for some
 *   seconds after any death, and while lanes die one after the other;
 * - everything else goes to any regular lane.
 */
export class RequestPlacement {
  readonly #lanes: LaneSet
  readonly #parts: PlacementParts
  readonly #guilt: Guilt
  #sheltered: Lane | null = null

  constructor(lanes: LaneSet, guilt: Guilt, parts: PlacementParts) {
    this.#lanes = lanes
    this.#parts = parts
    this.#guilt = guilt
  }

  /** Gives the dispatcher the lanes that take requests, each for its plugins. */
  place(): void {
    const { serving } = this.#lanes
    const { dispatcher, laneSubscribers, hub } = this.#parts
    this.#placeRoutes(serving)
    dispatcher.setLanes(serving)
    for (const lane of serving) laneSubscribers.holdBack(lane, (plugin) => this.#isKeptFrom(lane, plugin))
    hub.subscribersChanged()
  }

  #placeRoutes(lanes: readonly Lane[]): void {
    const { hasProbationBegun } = this.#lanes
    const guilt = this.#guilt
    const sheltered = oldestThatAnswers(lanes.filter(({ role }) => role === 'regular'))
    this.#sheltered = sheltered
    const hasShelter = this.#isOneOfMany && guilt.isCrisis()
    for (const { servedBy, number, plugin } of this.#parts.routing.table.list()) {
      if (servedBy !== 'lanes') continue
      const confined = guilt.confined.has(plugin)
      const stalling = guilt.stalling.has(plugin)
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
      return guilt.harmless.isKnown(plugin) || manifest?.plugins[plugin] === undefined
    }
  }

  /** True for a plugin whose events the lane does not get. No lane on demand takes them: where there is one lane, they stay there. */
  #isKeptFrom(lane: Lane, plugin: string): boolean {
    return (lane.isStandby || (this.#isOneOfMany && lane === this.#sheltered)) && this.#guilt.stalling.has(plugin)
  }

  get #isOneOfMany(): boolean {
    return this.#lanes.wanted > 1
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
