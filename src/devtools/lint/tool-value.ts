import type { ClassInfo, FunctionInfo, ObjectInfo } from './flow-graph.ts'
import type { Literal } from './literal.ts'

/** What an expression may be, as far as the lint cares. */
export type Value =
  | { kind: 'tools' }
  | { kind: 'tool'; tool: string }
  | { kind: 'method'; tool: string; method: string }
  | { kind: 'instance'; info: ClassInfo }
  | { kind: 'class'; info: ClassInfo }
  | { kind: 'function'; info: FunctionInfo }
  | { kind: 'object'; info: ObjectInfo }
  | { kind: 'shape'; shape: Extract<Shape, { members: unknown }> }

/** The same for another file: plain data, so that it can be kept. Only ways to tools are in it. */
export type Shape =
  | { tools: true }
  | { tool: string }
  | { tool: string; method: string }
  | {
      members: Record<string, Shape[]>
      /** Of a class: what `new` makes. */
      instance?: Shape[]
      /** Of a function: what a call gives. */
      returns?: Shape[]
      /** Of a function: the calls of tools that it hands its own arguments on to. */
      hands?: HandedCall[]
    }

/** A call of a tool within a function. */
export interface HandedCall {
  tool: string
  method: string
  /** A number is the place of the function's own argument. */
  args: Array<number | Literal>
}

/** The types of `#heddle` that say which tool a parameter is. */
export const TOOL_OF_TYPE: Readonly<Record<string, string>> = {
  Auth: 'auth',
  Config: 'config',
  Db: 'db',
  Queryable: 'db',
  EventBus: 'event_bus',
  Http: 'http',
  Logger: 'logger',
  Registry: 'registry',
  Scheduler: 'scheduler',
  State: 'state',
  Telemetry: 'telemetry',
}
