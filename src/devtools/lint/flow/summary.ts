import type { Literal } from '../literal.ts'

/** A value as other files of the domain see it. Plain data, so that it can be kept; only ways to tools are in it. */
export type Summary = { tools: true } | { tool: string } | { tool: string; method: string } | MemberSummary

export interface MemberSummary {
  members: Record<string, Summary[]>
  /** Of a class: what `new` makes. */
  instance?: Summary[]
  /** Of a function: what a call returns. */
  returns?: Summary[]
  /** Of a function: the tool calls to which it forwards its own arguments. */
  forwards?: ForwardedCall[]
}

/** A call of a tool within a function, with the function's own arguments among those that it passes. */
export interface ForwardedCall {
  tool: string
  method: string
  /** A number is the position of the function's own argument. */
  args: Array<number | Literal>
}
