// Which lanes take the requests of which plugins.

import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Hub } from '../events/hub.ts'
import type { Routing } from '../http/routes.ts'
import type { Guilt } from './guilt.ts'
import type { LaneSet } from './lane-set.ts'

/** What it depends on, and who hears of it. */
export interface PlacementParts {
  readonly lanes: LaneSet
  readonly guilt: Guilt
  readonly routing: Routing
  readonly dispatcher: Dispatcher
  readonly events: { readonly hub: Hub }
}

/**
 * Decides which lane takes the requests of which plugins, so that a plugin that ends lanes leaves one to the others:
 *
 * - the plugins that are confined go to the probation lane. Until that is up they go to the regular lanes, except for
 *   the sheltered one, and those that stand by;
 * - the sheltered lane, which is the oldest of those that answer, takes only plugins that are known to do no harm, for some
 *   seconds after any death, and while lanes die one after the other;
 * - everything else goes to any regular lane.
 */
export function placeRequests({ lanes, guilt, routing, dispatcher, events }: PlacementParts): void {
  const { serving, probation } = lanes
  if (probation.isWanted && serving.some(({ role }) => role === 'probation')) probation.hasBegun = true
  const isOneOfMany = lanes.wanted > 1
  const sheltered = oldestThatAnswers(serving.filter(({ role }) => role === 'regular'))
  const hasShelter = isOneOfMany && guilt.isCrisis()
  for (const { servedBy, number, plugin } of routing.table.list()) {
    if (servedBy !== 'lanes') continue
    const confined = guilt.confined.has(plugin)
    for (const lane of serving) {
      const isOpen =
        lane.role === 'probation'
          ? confined || (hasShelter && !known(lane, plugin))
          : confined
            ? !probation.hasBegun && !lane.isStandby && lane !== sheltered
            : !(hasShelter && lane === sheltered) || known(lane, plugin)
      lane.servesRoute[number] = isOpen && lane.hostsRoute[number] === 1 ? 1 : 0
    }
  }
  dispatcher.setLanes(serving)
  events.hub.subscribersChanged()

  /** Folders that plugins of the primary serve run no code of a plugin. */
  function known({ manifest }: Lane, plugin: string): boolean {
    return guilt.harmless.isKnown(plugin) || manifest?.plugins[plugin] === undefined
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
