import type { ClassInfo, FunctionInfo, ObjectInfo, Value } from './graph.ts'
import type { MemberSummary, Summary } from './summary.ts'

/** Makes one object for each value of a file. */
export class Values {
  readonly #byKey = new Map<unknown, Value>()

  tools(): Value {
    return this.#once('tools', () => ({ kind: 'tools' }))
  }

  tool(tool: string): Value {
    return this.#once(`tool ${tool}`, () => ({ kind: 'tool', tool }))
  }

  method(tool: string, method: string): Value {
    return this.#once(`${tool}.${method}`, () => ({ kind: 'method', tool, method }))
  }

  instance(info: ClassInfo): Value {
    return this.#once(info, () => ({ kind: 'instance', info }))
  }

  class(info: ClassInfo): Value {
    return this.#once(info.node, () => ({ kind: 'class', info }))
  }

  function(info: FunctionInfo): Value {
    return this.#once(info, () => ({ kind: 'function', info }))
  }

  object(info: ObjectInfo): Value {
    return this.#once(info, () => ({ kind: 'object', info }))
  }

  ofSummary(summary: Summary): Value {
    if ('members' in summary) return this.ofMembers(summary, () => summary)
    if ('tools' in summary) return this.tools()
    return 'method' in summary ? this.method(summary.tool, summary.method) : this.tool(summary.tool)
  }

  /** @param key by which the value is found again @param summarize called the first time */
  ofMembers(key: object, summarize: () => MemberSummary): Value {
    return this.#once(key, () => ({ kind: 'summary', summary: summarize() }))
  }

  #once(key: unknown, make: () => Value): Value {
    let value = this.#byKey.get(key)
    if (!value) {
      value = make()
      this.#byKey.set(key, value)
    }
    return value
  }
}
