import type { Summary } from './flow/summary.ts'
import type { Literal } from './literal.ts'
import type { PayloadSchema } from './payload-schema.ts'

/** The facts of an export that other files of the domain need. Plain data, kept while the file is unchanged. */
export interface ModuleExport {
  /** The text of a constant, or the texts of its members. */
  literal?: Literal
  /** The tools that its value leads to. */
  summaries?: Summary[]
  /** The tools that values of this type lead to. */
  type?: Summary[]
  schema?: PayloadSchema
  /** The contracts in an object of schemas. */
  contracts?: Contracts
  /** The exports of the module in `export * as name`. */
  module?: ModuleExports
}

export type ModuleExports = Record<string, ModuleExport>

/** Event names and their schemas, as an object of an `events.ts` holds them. */
export interface Contracts {
  events: Array<{ event: string; line: number; schema: PayloadSchema }>
  /** The line from which on names cannot be read: a spread, a computed key, or no object literal at all. */
  unreadableLine: number | undefined
}
