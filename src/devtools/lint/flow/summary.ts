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
}

/** A call of a tool within a function, with the function's own arguments among those that it passes. */
export interface ForwardedCall {
  tool: string
  method: string
  /** A number is the position of the function's own argument. */
  args: Array<number | Literal>
}
