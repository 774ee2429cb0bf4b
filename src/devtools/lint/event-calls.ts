import type { Module, Project } from './project.ts'
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
  /** The known parts of the name: the texts around the gaps, first to last. */
  pieces: string[]
  module: Module
  line: number
}

export function dynamicEmits(project: Project): DynamicEmit[] {
  return busCalls(project).flatMap(({ kind, module, line, args }) =>
    kind === 'emit' ? patternsOf(args[0]).map((pieces) => ({ pieces, module, line })) : [],
  )
}

/** True when the event's name may be what the call publishes. */
export function mayEmit({ pieces }: DynamicEmit, event: string): boolean {
  const [first = '', ...rest] = pieces
  const last = rest.pop() ?? ''
  if (!event.startsWith(first) || !event.endsWith(last) || event.length < first.length + last.length) return false
  const middle = event.slice(first.length, event.length - last.length)
  let from = 0
  return rest.every((piece) => {
    const found = middle.indexOf(piece, from)
    from = found + piece.length
    return found !== -1
  })
}

/** True when no character of the name is known. */
export function isBlank({ pieces }: DynamicEmit): boolean {
  return pieces.every((piece) => piece === '')
}

function patternsOf(name: Literal | undefined): string[][] {
  if (name?.type === 'choice') return name.options.flatMap(patternsOf)
  if (name?.type !== 'string') return [['', '']]
  const pieces = name.parts
    .map(({ text }) => text)
    .join('')
    .split(HOLE)
  return pieces.length > 1 ? [pieces] : []
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
