import { type Literal, textOf } from './literal.ts'
import type { Module, Project } from './project.ts'

/** A call of `publish`, `request` or `subscribe` with a name that the source shows. */
export interface EventCall {
  event: string
  kind: 'emit' | 'subscribe'
  module: Module
  line: number
  payload: Literal | undefined
}

export function eventCalls(project: Project): EventCall[] {
  return project.modules.flatMap((module) =>
    module.toolCalls.flatMap(({ tool, method, line, args }): EventCall[] => {
      const emits = method === 'publish' || method === 'request'
      const event = textOf(args[0])
      if (tool !== 'event_bus' || event === undefined || !(emits || method === 'subscribe')) return []
      return [{ event, kind: emits ? 'emit' : 'subscribe', module, line, payload: emits ? args[1] : undefined }]
    }),
  )
}

/** Events that the runtime itself publishes. */
export function isBuiltIn(event: string): boolean {
  return event === 'event.delivery.failed' || event.startsWith('runtime.')
}
