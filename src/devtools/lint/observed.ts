import type { TopologyEntry } from '../../contracts/event-bus.ts'
import { isBuiltIn } from './event-calls.ts'
import type { ScannedEvent } from './event-scan.ts'
import { compareText, type Finding } from './finding.ts'

/** What the sources of all domains say. It is plain data: it comes from another process. */
export interface SourceFacts {
  /** Sorted by file and line. */
  findings: Finding[]
  /** The numbers of what was checked: files of plugins and migrations, registered routes, names of events. */
  checked: { plugins: number; migrations: number; routes: number; events: number }
  /** Sorted by name. */
  events: ScannedEvent[]
  /** The place of each event's contract, `file:line`, by event. */
  contracts: Record<string, string>
}

/** The state of a running process, for comparison with its sources. */
export interface RunningProcess {
  /** ISO 8601 UTC: since when the process has counted. */
  since: string
  /** The result of `event_bus.getTopology()`. */
  topology: Readonly<Record<string, TopologyEntry>>
  /** The result of `registry.getUncalledTools()`. */
  uncalledTools: Readonly<Record<string, readonly string[]>>
}

/**
 * The differences between a running process and its sources. These are not findings: code that never ran may simply not have been needed yet.
 * The runtime's own events are left out.
 */
export interface Observed {
  /** ISO 8601 UTC: the process's start. */
  since: string
  /** Events that fired although no contract and no `publish` in the sources names them. */
  undeclared_events: Array<{ event: string; emitters: string[]; subscribers: string[]; fire_count: number }>
  /** Events with a contract or a `publish` in the sources that have not fired. `contract` is `file:line`, `emitters` are the plugins that would publish them. */
  unseen_events: Array<{ event: string; contract: string | null; emitters: string[] }>
  /** Tools that a plugin takes and has not called in any thread. */
  unused_tools: Array<{ plugin: string; tools: string[] }>
}

/** @internal */
export function observe(
  { contracts, events }: SourceFacts,
  { since, topology, uncalledTools }: RunningProcess,
): Observed {
  const emitters = new Map<string, string[]>()
  for (const scanned of events) if (scanned.emitters.length > 0) emitters.set(scanned.event, scanned.emitters)
  const declared = new Set([...Object.keys(contracts), ...emitters.keys()])
  const fired = Object.entries(topology).filter(([, { fire_count }]) => fire_count > 0)
  const seen = new Set(fired.map(([event]) => event))
  return {
    since,
    undeclared_events: fired
      .filter(([event]) => !declared.has(event) && !isBuiltIn(event))
      .map(([event, { emitters, subscribers, fire_count }]) => ({ event, emitters, subscribers, fire_count }))
      .sort((a, b) => compareText(a.event, b.event)),
    unseen_events: [...declared]
      .filter((event) => !seen.has(event) && !isBuiltIn(event))
      .sort(compareText)
      .map((event) => ({
        event,
        contract: Object.hasOwn(contracts, event) ? contracts[event]! : null,
        emitters: emitters.get(event) ?? [],
      })),
    unused_tools: Object.entries(uncalledTools)
      .map(([plugin, tools]) => ({ plugin, tools: [...tools].sort(compareText) }))
      .sort((a, b) => compareText(a.plugin, b.plugin)),
  }
}
