// The events that the sources publish and subscribe to, and the plugins that do so.
import { compareText } from './finding.ts'
import { type Module, type Project, pluginsByFile } from './project.ts'
import { HOLE, type Literal, textsOf } from './texts.ts'

/** A call of `publish`, `request` or `subscribe` with a name that the source shows. */
export interface EventCall {
  event: string
  kind: 'emit' | 'subscribe'
  module: Module
  line: number
  payload: Literal | undefined
}

export function eventCalls(project: Project): EventCall[] {
  return busCalls(project).flatMap(({ kind, module, line, args }) => {
    const [name, payload] = args
    // With several names and several payloads, it is unknown which payload belongs to which name.
    const isTold = kind === 'emit' && !(name?.type === 'choice' && payload?.type === 'choice')
    // An empty name is the initial value of a variable.
    const names = textsOf(name).filter((event) => event !== '')
    return names.map((event): EventCall => ({ event, kind, module, line, payload: isTold ? payload : undefined }))
  })
}

/** A `publish` or `request` whose event name, or a part of it, only the running program knows. */
export interface DynamicEmit {
  /** With a hole for each part that is not known. */
  name: string
  module: Module
  line: number
}

export function dynamicEmits(project: Project): DynamicEmit[] {
  return busCalls(project).flatMap(({ kind, module, line, args }) =>
    kind === 'emit' ? openNames(args[0]).map((name) => ({ name, module, line })) : [],
  )
}

/** True when the event's name may be what the call publishes. */
export function mayEmit({ name }: DynamicEmit, event: string): boolean {
  const pieces = name.split(HOLE).map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${pieces.join('.*')}$`, 's').test(event)
}

/** True when no character of the name is known. */
export function isBlank({ name }: DynamicEmit): boolean {
  return name.replaceAll(HOLE, '') === ''
}

function openNames(name: Literal | undefined): string[] {
  if (name?.type === 'choice') return name.options.flatMap(openNames)
  if (name?.type !== 'string') return [HOLE]
  const text = name.parts.map((part) => part.text).join('')
  return text.includes(HOLE) ? [text] : []
}

function busCalls(project: Project) {
  return project.modules.flatMap((module) =>
    module.toolCalls.flatMap(({ tool, method, line, args }) => {
      const kind =
        method === 'subscribe' ? 'subscribe' : method === 'publish' || method === 'request' ? 'emit' : undefined
      return (tool === 'event_bus' || tool === 'tx') && kind
        ? [{ kind: kind as EventCall['kind'], module, line, args }]
        : []
    }),
  )
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
