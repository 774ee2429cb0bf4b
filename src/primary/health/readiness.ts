import type { Readiness } from '../../contracts/registry.ts'

/** The state of the process, as far as its readiness depends on it. */
export interface ReadinessFacts {
  /** Number of lanes per state. */
  readonly lanes: Record<string, number>
  readonly lanesWanted: number
  readonly isDraining: boolean
  /** The start is over. */
  readonly isStarted: boolean
  /** Tools that did not boot, or do not do their work, each with its reason. */
  readonly toolReasons: readonly string[]
  /** Plugins that are not up since the start, each with the reason; none without BOOT_STRICT. */
  readonly pluginReasons: readonly string[]
  /** Why the store of the event streams cannot be used; null when it can. */
  readonly busFault: string | null
  readonly wasBusOpen: boolean
  readonly isCrowded: boolean
  /** Why the process's thread pool does not serve; null while it does. */
  readonly poolFault: string | null
  /** Why no new connection is taken; null while they are. */
  readonly connectionFault: string | null
  /** Why hardly a descriptor is left; null while some are. */
  readonly descriptorFault: string | null
}

/** Whether a process should get requests, and the reasons where it should not or is impaired. */
export function readinessOf(facts: ReadinessFacts): Readiness {
  const { lanes, lanesWanted, busFault } = facts
  const reasons: string[] = []
  if (facts.isDraining) reasons.push('draining')
  else if (!facts.isStarted) reasons.push('starting')
  if (lanes.ready === 0) reasons.push('no lane is up')
  reasons.push(...facts.toolReasons, ...facts.pluginReasons)
  if (facts.poolFault !== null) reasons.push(facts.poolFault)
  if (facts.connectionFault !== null) reasons.push(facts.connectionFault)
  if (facts.descriptorFault !== null) reasons.push(facts.descriptorFault)
  if (busFault !== null && !facts.wasBusOpen) reasons.push(`event bus: ${busFault}`)
  const ready = reasons.length === 0
  if (ready && lanes.ready! < lanesWanted)
    reasons.push(`${lanesWanted - lanes.ready!} of ${lanesWanted} lanes are missing`)
  // All replicas share the store: if all of them refused because of it, none would answer anything.
  if (ready && busFault !== null) reasons.push(`event bus: ${busFault}`)
  // It finishes the work that it has begun, and takes new requests as soon as there is room.
  if (facts.isCrowded) reasons.push('the event queue is crowded')
  return { ready, reasons, lanes }
}
