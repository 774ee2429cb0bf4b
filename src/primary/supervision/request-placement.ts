// Which lanes take the requests of which plugins.

import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { Hub } from '../events/hub.ts'
import type { Routing } from '../http/routes.ts'
import type { Isolation } from './isolation.ts'
import type { LaneSet } from './lane-set.ts'

/** What it depends on, and who hears of it. */
export interface PlacementParts {
  readonly lanes: LaneSet
  readonly isolation: Isolation
  readonly routing: Routing
  readonly dispatcher: Dispatcher
  readonly events: { readonly hub: Hub }
}

/**
 * Decides which lanes serve the routes of which plugins. Isolated plugins have the probation lane; until that is up, the regular lanes without
 * their standbys. All others have the regular lanes.
 */
export function placeRequests({ lanes, isolation, routing, dispatcher, events }: PlacementParts): void {
  const { serving, probation } = lanes
  if (probation.isWanted && serving.some(({ role }) => role === 'probation')) probation.hasBegun = true
  for (const { servedBy, number, plugin } of routing.table.list()) {
    if (servedBy !== 'lanes') continue
    const isIsolated = isolation.has(plugin)
    for (const lane of serving) {
      const isOpen = lane.role === 'probation' ? isIsolated : !isIsolated || (!probation.hasBegun && !lane.isStandby)
      lane.servesRoute[number] = isOpen && lane.hostsRoute[number] === 1 ? 1 : 0
    }
  }
  dispatcher.setLanes(serving)
  events.hub.subscribersChanged()
}
