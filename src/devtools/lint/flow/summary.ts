import type { Literal } from '../literal.ts'

/** A value as other files of the domain see it. Plain data, so that it can be kept; only ways to tools are in it. */
export type Summary = { tools: true } | { tool: string } | { tool: string; method: string } | MemberSummary

export interface MemberSummary {
  members: Record<string, Summary[]>
  /** The instances that `new` makes of a class. */
  instance?: Summary[]
  /** The values that a call of a function returns. */
  returns?: Summary[]
  /** The tool calls to which a function forwards its own arguments. */
  forwards?: ForwardedCall[]
  /** What a call of a function does. */
  effects?: Effects
}

/** What a function does with the database and the event bus, itself or through what it calls. */
export interface Effects {
  /** It sends SQL that changes something. */
  writes: boolean
  /** It publishes by `event_bus`. */
  publishes: boolean
  /** Its calls that belong to no transaction, such as `db.execute`. */
  outside: string[]
}

/** A call of a tool within a function, with the function's own arguments among those that it passes. */
export interface ForwardedCall {
  tool: string
  method: string
  /** A number is the position of the function's own argument. */
  args: Array<number | Literal>
}
