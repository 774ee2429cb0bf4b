import type { Settings } from '../../core/config/schema.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { Lane } from '../dispatch/lane.ts'
import { RequestPlacement } from '../dispatch/request-placement.ts'
import { Confinement } from '../supervision/confinement.ts'
import { handlersOf } from '../supervision/lane-handlers.ts'
import { type Handlers, Sightings } from '../supervision/sightings.ts'
import { Suspicion } from '../supervision/suspicion.ts'
import type { HttpParts } from './http.ts'
import type { SupervisorLink } from './supervisor-link.ts'

export interface SuspicionParts {
  readonly sightings: Sightings
  readonly suspicion: Suspicion
  readonly confinement: Confinement
  handlersOf(lane: Lane): Handlers
  /** Gives the dispatcher the lanes that take requests, each for its plugins. */
  placeRequests(): void
}

interface SuspicionOptions {
  settings: Settings
  http: HttpParts
  link: SupervisorLink
}

/** What is known of the plugins' guilt, and where their requests go because of it. */
export function assembleSuspicion({ settings, http, link }: SuspicionOptions): SuspicionParts {
  const { routing, dispatcher } = http
  const ofLane = (lane: Lane): Handlers => handlersOf(lane, routing, Date.now())
  const sightings = new Sightings(ofLane)
  const confinement = new Confinement({
    onWanted: (isWanted) => link.supervisor.wantProbation(isWanted),
    onChange: placeRequests,
  })
  const placement = new RequestPlacement({
    routes: routing.table,
    lanesWanted: settings.lanes,
    isConfined: (plugin) => confinement.isConfined(plugin),
    isKnown: (plugin) => sightings.isKnown(plugin),
    isCrisis: () => confinement.isCrisis(steadyMs()),
  })
  function placeRequests(): void {
    const { serving, hasProbationBegun } = link.supervisor.lanes
    placement.place(serving, hasProbationBegun)
    dispatcher.setLanes(serving)
  }
  sightings.start(() => link.supervisor.lanes.ready, placeRequests)
  return { sightings, suspicion: new Suspicion(sightings), confinement, handlersOf: ofLane, placeRequests }
}
