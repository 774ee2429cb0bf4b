// The events that the sources publish and subscribe to, and the plugins that do so.
import { compareText } from './finding.ts'
import { type Module, type Project, pluginsByFile } from './project.ts'
import { HOLE, joined, type Literal } from './texts.ts'

/** A call of `publish`, `request` or `subscribe`, once for each name that the event may have. */
export interface EventCall {
  /** With a hole for each part that only the running program knows. */
  event: string
  kind: 'emit' | 'subscribe'
  module: Module
  line: number
  payload: Literal | undefined
}

const KINDS: Readonly<Record<string, EventCall['kind']>> = { publish: 'emit', request: 'emit', subscribe: 'subscribe' }

export function eventCalls({ modules }: Project): EventCall[] {
  return modules.flatMap((module) =>
    module.toolCalls.flatMap(({ tool, method, line, args: [name, payload] }) => {
      const kind = tool === 'event_bus' || tool === 'tx' ? KINDS[method] : undefined
      if (kind === undefined) return []
      // With several names and several payloads, it is unknown which payload belongs to which name.
      const isTold = kind === 'emit' && !(name?.type === 'choice' && payload?.type === 'choice')
      return namesOf(name).map((event) => ({ event, kind, module, line, payload: isTold ? payload : undefined }))
    }),
  )
}

function namesOf(name: Literal | undefined): string[] {
  if (name?.type === 'choice') return name.options.flatMap(namesOf)
  const event = name?.type === 'string' ? joined(name.parts) : HOLE
  // An empty name is the initial value of a variable.
  return event === '' ? [] : [event]
}

/** True when the source shows the whole name. */
export function isNamed({ event }: EventCall): boolean {
  return !event.includes(HOLE)
}

/** True when the event may be the one that is called so. */
export function mayBe({ event }: EventCall, name: string): boolean {
  const pieces = event.split(HOLE).map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${pieces.join('.*')}$`, 's').test(name)
}

/** True when no character of the name is known. */
export function isBlank({ event }: EventCall): boolean {
  return event.replaceAll(HOLE, '') === ''
}

/** Events that the runtime itself publishes. */
export function isBuiltIn(event: string): boolean {
  return event === 'event.delivery.failed' || event.startsWith('runtime.')
}

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
  for (const { event, kind, module } of eventCalls(project).filter(isNamed)) {
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
