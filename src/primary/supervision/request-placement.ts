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
 * Decides which lanes serve which routes: isolated plugins have the probation lane alone, all others the regular lanes. Until the probation lane is
 * up, a plugin that has only blocked a lane keeps that one: it may have computed for a moment, and costs no other lane.
 */
export function placeRequests({ lanes, isolation, routing, dispatcher, events }: PlacementParts): void {
  const { serving } = lanes
  const hasProbation = serving.some(({ role }) => role === 'probation')
  for (const { servedBy, number, plugin } of routing.table.list()) {
    if (servedBy !== 'lanes') continue
    const isIsolated = isolation.has(plugin)
    const blocked = isIsolated && !hasProbation ? isolation.blockedBy(plugin) : undefined
    for (const lane of serving) {
      const isItsLane = (lane.role === 'probation') === isIsolated || lane === blocked
      lane.servesRoute[number] = isItsLane && lane.hostsRoute[number] === 1 ? 1 : 0
    }
  }
  dispatcher.setLanes(serving)
  events.hub.subscribersChanged()
}
