// Which lanes take the requests of which plugins.

import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { ALWAYS, type Lane, NOT, WHILE_IT_ANSWERS } from '../dispatch/lane.ts'
import type { Hub } from '../events/hub.ts'
import type { LaneSubscribers } from '../events/lane-subscribers.ts'
import type { Routing } from '../http/routes.ts'
import type { Guilt } from './guilt.ts'
import type { LaneSet } from './lane-set.ts'

/** What it depends on, and who hears of it. */
export interface PlacementParts {
  readonly lanes: LaneSet
  readonly guilt: Guilt
  readonly routing: Routing
  readonly dispatcher: Dispatcher
  readonly events: { readonly hub: Hub; readonly laneSubscribers: LaneSubscribers }
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
export function placeRequests({ lanes, guilt, routing, dispatcher, events }: PlacementParts): void {
  const { serving, hasProbationBegun } = lanes
  const isOneOfMany = lanes.wanted > 1
  const sheltered = oldestThatAnswers(serving.filter(({ role }) => role === 'regular'))
  const hasShelter = isOneOfMany && guilt.isCrisis()
  for (const { servedBy, number, plugin } of routing.table.list()) {
    if (servedBy !== 'lanes') continue
    const confined = guilt.confined.has(plugin)
    const stalling = guilt.stalling.has(plugin)
    for (const lane of serving) {
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
  dispatcher.setLanes(serving)
  for (const lane of serving) {
    // No lane on demand takes events: where there is one lane, they stay there.
    const isKept = lane.isStandby || (isOneOfMany && lane === sheltered)
    events.laneSubscribers.holdBack(lane, (plugin) => isKept && guilt.stalling.has(plugin))
  }
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
