import type { Evaluator } from './evaluator.ts'
import type { FunctionInfo, Value } from './graph.ts'
import type { Effects, ForwardedCall, Summary } from './summary.ts'
import type { Values } from './values.ts'

/** Members of members are followed that far. */
const MAX_DEPTH = 3

/** Writes values of this file as plain data, for other files. */
export class Summarizer {
  /** The tool calls that each function forwards its arguments to, as far as they have been found. */
  readonly forwarded = new Map<FunctionInfo, ForwardedCall[]>()
  /** What each function does, when that is known and is anything. */
  effects: ReadonlyMap<FunctionInfo, Effects> = new Map()
  readonly #evaluator: Evaluator
  readonly #values: Values

  constructor(evaluator: Evaluator, values: Values) {
    this.#evaluator = evaluator
    this.#values = values
  }

  summarize(values: Iterable<Value>, depth = 0): Summary[] {
    return depth > MAX_DEPTH ? [] : [...values].flatMap((value) => this.#summaryOf(value, depth) ?? [])
  }

  #summaryOf(value: Value, depth: number): Summary | undefined {
    switch (value.kind) {
      case 'tools':
        return { tools: true }
      case 'tool':
        return { tool: value.tool }
      case 'method':
        return { tool: value.tool, method: value.method }
      case 'summary':
        return value.summary
      case 'function': {
        const returns = this.summarize(value.info.returns.values, depth + 1)
        const forwards = this.forwarded.get(value.info)
        const effects = this.effects.get(value.info)
        return returns.length > 0 || forwards || effects ? { members: {}, returns, forwards, effects } : undefined
      }
      case 'class':
        return { members: {}, instance: this.summarize([this.#values.instance(value.info)], depth) }
      case 'instance':
        return this.#summaryOfMembers(value, this.#evaluator.classChain(value.info), depth)
      case 'object':
        return this.#summaryOfMembers(value, [value.info], depth)
    }
  }

  #summaryOfMembers(
    value: Value,
    infos: ReadonlyArray<{ members: ReadonlyMap<string, unknown> }>,
    depth: number,
  ): Summary | undefined {
    const keys = new Set(infos.flatMap(({ members }) => [...members.keys()]))
    const members: Record<string, Summary[]> = {}
    for (const key of keys) {
      const summaries = this.summarize(this.#evaluator.member(value, key), depth + 1)
      if (summaries.length > 0) members[key] = summaries
    }
    return Object.keys(members).length > 0 ? { members } : undefined
  }
}
