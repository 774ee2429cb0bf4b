import type { Origin } from '../../core/causality/context.ts'
import type { Settings } from '../../core/config/schema.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { Lane } from '../dispatch/lane.ts'
import { RequestPlacement } from '../dispatch/request-placement.ts'
import { Confinement } from '../supervision/confinement.ts'
import { handlersOf, lastBegunIn } from '../supervision/lane-handlers.ts'
import { type Handlers, Sightings } from '../supervision/sightings.ts'
import { Suspicion } from '../supervision/suspicion.ts'
import type { EventParts } from './events.ts'
import type { HttpParts } from './http.ts'
import type { SupervisorLink } from './supervisor-link.ts'

export interface SuspicionParts {
  readonly sightings: Sightings
  readonly suspicion: Suspicion
  readonly confinement: Confinement
  handlersOf(lane: Lane): Handlers
  /** The handler that a lane has begun last and not ended. */
  lastBegunIn(lane: Lane): Origin | null
  /** Gives the dispatcher the lanes that take requests, each for its plugins. */
  placeRequests(): void
}

interface SuspicionOptions {
  settings: Settings
  http: HttpParts
  events: EventParts
  link: SupervisorLink
}

/** What is known of the plugins' guilt, and where their requests go because of it. */
export function assembleSuspicion({ settings, http, events, link }: SuspicionOptions): SuspicionParts {
  const { routing, dispatcher } = http
  const { hub, laneSubscribers } = events
  const ofLane = (lane: Lane): Handlers => handlersOf(lane, routing, Date.now())
  const sightings = new Sightings(ofLane)
  const confinement = new Confinement({
    onWanted: (isWanted) => link.supervisor.wantProbation(isWanted),
    // A lane reads streams by itself, and ahead: no lane reads for it, and other processes do.
    onStalling: (plugin, isStalling) => events.streams?.pausePlugin(plugin, isStalling, 'stalling'),
    onChange: placeRequests,
  })
  const placement = new RequestPlacement({
    routes: routing.table,
    lanesWanted: settings.lanes,
    isConfined: (plugin) => confinement.isConfined(plugin),
    isStalling: (plugin) => confinement.isStalling(plugin),
    isKnown: (plugin) => sightings.isKnown(plugin),
    isCrisis: () => confinement.isCrisis(steadyMs()),
  })
  function placeRequests(): void {
    const { serving, hasProbationBegun } = link.supervisor.lanes
    placement.place(serving, hasProbationBegun)
    dispatcher.setLanes(serving)
    for (const lane of serving) laneSubscribers.holdBack(lane, (plugin) => placement.isKeptFrom(lane, plugin))
    hub.subscribersChanged()
  }
  sightings.start(() => link.supervisor.lanes.ready, placeRequests)
  return {
    sightings,
    suspicion: new Suspicion(sightings),
    confinement,
    handlersOf: ofLane,
    lastBegunIn: (lane) => lastBegunIn(lane, routing),
    placeRequests,
  }
}
