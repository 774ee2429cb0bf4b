// Which lanes take the requests of which plugins.

import type { Dispatcher } from '../dispatch/dispatcher.ts'
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
 * Decides which lane takes the requests of which plugins. Those that are confined go to the probation lane; until that is up they go to the
 * regular lanes, except for a standby. All others go to any regular lane.
 */
export function placeRequests({ lanes, guilt, routing, dispatcher, events }: PlacementParts): void {
  const { serving, probation } = lanes
  if (probation.isWanted && serving.some(({ role }) => role === 'probation')) probation.hasBegun = true
  for (const { servedBy, number, plugin } of routing.table.list()) {
    if (servedBy !== 'lanes') continue
    const confined = guilt.confined.has(plugin)
    for (const lane of serving) {
      const isOpen = lane.role === 'probation' ? confined : !confined || (!probation.hasBegun && !lane.isStandby)
      lane.servesRoute[number] = isOpen && lane.hostsRoute[number] === 1 ? 1 : 0
    }
  }
  dispatcher.setLanes(serving)
  events.hub.subscribersChanged()
}
