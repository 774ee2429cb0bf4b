import type { Readiness } from '../../contracts/registry.ts'

/** What a process knows of itself. */
export interface ReadinessFacts {
  /** Number of lanes per state. */
  readonly lanes: Record<string, number>
  readonly lanesWanted: number
  readonly isDraining: boolean
  /** The start is over. */
  readonly isStarted: boolean
  /** Why tools hold it back. */
  readonly toolReasons: readonly string[]
  /** Why the store of the events cannot be used; null when it can. */
  readonly busFault: string | null
  readonly wasBusOpen: boolean
  readonly isCrowded: boolean
}

/** Whether a process should get requests, and what speaks against it. */
export function readinessOf(facts: ReadinessFacts): Readiness {
  const { lanes, lanesWanted, busFault } = facts
  const reasons: string[] = []
  if (facts.isDraining) reasons.push('draining')
  else if (!facts.isStarted) reasons.push('starting')
  if (lanes.ready === 0) reasons.push('no lane is up')
  reasons.push(...facts.toolReasons)
  if (busFault !== null && !facts.wasBusOpen) reasons.push(`event bus: ${busFault}`)
  const ready = reasons.length === 0
  if (ready && lanes.ready! < lanesWanted)
    reasons.push(`${lanesWanted - lanes.ready!} of ${lanesWanted} lanes are missing`)
  // All replicas share the store: were they all to refuse because of it, nobody would answer anything.
  if (ready && busFault !== null) reasons.push(`event bus: ${busFault}`)
  // It serves what it has begun, and takes new requests as soon as there is room.
  if (facts.isCrowded) reasons.push('the event queue is crowded')
  return { ready, reasons, lanes }
}
