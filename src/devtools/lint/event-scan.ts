import { eventCalls } from './event-calls.ts'
import { compareText } from './finding.ts'
import { pluginsByFile } from './plugin-files.ts'
import type { Project } from './project.ts'

/** An event that the sources publish or subscribe to. */
export interface ScannedEvent {
  event: string
  /** Names of plugins, `<domain>.<ClassName>`, sorted. */
  emitters: string[]
  /** Names of plugins, sorted. */
  subscribers: string[]
}

/**
 * Finds the events of all plugins in their sources, whether they ever fired or not. Leaves out names that are only known at run time.
 * The events of a file that plugins import count for each of these plugins.
 * @internal
 */
export function eventsOf(project: Project): ScannedEvent[] {
  const events = new Map<string, { emitters: Set<string>; subscribers: Set<string> }>()
  const pluginsOf = pluginsByFile(project)
  for (const { event, kind, module } of eventCalls(project)) {
    const plugins = pluginsOf.get(module.file)
    if (!plugins) continue
    const entry = events.get(event) ?? { emitters: new Set(), subscribers: new Set() }
    events.set(event, entry)
    for (const plugin of plugins) (kind === 'emit' ? entry.emitters : entry.subscribers).add(plugin)
  }
  return [...events]
    .map(([event, { emitters, subscribers }]) => ({
      event,
      emitters: sorted(emitters),
      subscribers: sorted(subscribers),
    }))
    .sort((a, b) => compareText(a.event, b.event))
}

function sorted(names: ReadonlySet<string>): string[] {
  return [...names].sort(compareText)
}
