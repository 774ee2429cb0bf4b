import type { Node } from 'oxc-parser'
import type { Call, Frame, FunctionInfo, Source } from './flow-graph.ts'
import { staticKey, unwrap } from './syntax.ts'
import type { ToolFlow } from './tool-flow.ts'
import type { Value } from './tool-value.ts'

/** A call of a tool's method, or of a function that hands its own arguments on to one. */
export interface ToolCallSite {
  tool: string
  method: string
  /** Up to the first spread: what comes after it has no known place. */
  args: readonly Source[]
  /** Where the callee ends: the method's name. */
  offset: number
  /** Arms of branches that it stands in, each `<branch>:<arm>`. */
  arms: readonly string[]
}

/** How far arguments that functions hand on are followed. */
const MAX_HANDING_ON = 4

/** Finds the calls of tools in one file. */
export class ToolCalls {
  readonly #flow: ToolFlow

  constructor(flow: ToolFlow) {
    this.#flow = flow
  }

  read(): ToolCallSite[] {
    const callers = this.#callersByFunction()
    const sites: ToolCallSite[] = []
    for (const { node, frame } of this.#flow.graph.calls) {
      if (node.type !== 'CallExpression') continue
      const { callee, args } = plainCall(node, frame)
      const methods = new Set<Value>()
      for (const value of this.#flow.evaluate(callee, frame)) if (value.kind === 'method') methods.add(value)
      for (const value of methods) {
        if (value.kind !== 'method') continue
        const { tool, method } = value
        const site = { tool, method, args, offset: callee.end - 1, arms: armsOf(frame) }
        sites.push(...this.#handedOn(site, callers, 0))
      }
    }
    return sites
  }

  /** The site itself, or, where its arguments are parameters of the function around it, the calls of that function. */
  #handedOn(site: ToolCallSite, callers: ReadonlyMap<FunctionInfo, Call[]>, depth: number): ToolCallSite[] {
    const around = site.args.slice(0, 2).flatMap((arg) => this.#parameter(arg)?.fn ?? [])[0]
    const calls = around ? (callers.get(around) ?? []) : []
    if (calls.length === 0 || depth === MAX_HANDING_ON) return [site]
    return calls.flatMap(({ node, frame }) => {
      const { callee, args: given } = plainCall(node, frame)
      const args = site.args.map((arg) => {
        const parameter = this.#parameter(arg)
        return parameter?.fn === around ? (given[parameter!.index] ?? arg) : arg
      })
      const outer = { ...site, args, offset: callee.end - 1, arms: [...site.arms, ...armsOf(frame)] }
      return this.#handedOn(outer, callers, depth + 1)
    })
  }

  /** Which parameter of which function the expression is, when it is nothing else. */
  #parameter({ node, frame }: Source): { fn: FunctionInfo; index: number } | undefined {
    const name = unwrap(node)
    if (name.type !== 'Identifier') return undefined
    let at: Frame | undefined = frame
    while (at && !at.names.has(name.name)) at = at.parent
    const fn = at?.fn
    if (!fn || fn.frame !== at || at.names.get(name.name)!.sources.length > 0) return undefined
    const index = fn.params.findIndex((param) => param.type === 'Identifier' && param.name === name.name)
    return index === -1 ? undefined : { fn, index }
  }

  #callersByFunction(): Map<FunctionInfo, Call[]> {
    const callers = new Map<FunctionInfo, Call[]>()
    for (const call of this.#flow.graph.calls) {
      if (call.node.type !== 'CallExpression') continue
      for (const value of this.#flow.evaluate(plainCall(call.node, call.frame).callee, call.frame)) {
        if (value.kind !== 'function') continue
        const known = callers.get(value.info)
        if (!known) callers.set(value.info, [call])
        else if (!known.includes(call)) known.push(call)
      }
    }
    return callers
  }
}

/** The callee and arguments of a call, also of `f.call(self, …)`, `f.apply(self, […])` and `Reflect.apply(f, self, […])`. */
function plainCall(node: Call['node'], frame: Frame): { callee: Node; args: Source[] } {
  const callee = unwrap(node.callee)
  const plain = { callee, args: upToSpread(node.arguments, frame) }
  if (callee.type !== 'MemberExpression') return plain
  const key = staticKey(callee.property, callee.computed)
  const object = unwrap(callee.object)
  if (key === 'call') return { callee: object, args: plain.args.slice(1) }
  if (key !== 'apply') return plain
  const isReflect = object.type === 'Identifier' && object.name === 'Reflect'
  const target = isReflect ? node.arguments[0] : object
  const list = node.arguments[isReflect ? 2 : 1]
  if (!target) return plain
  return { callee: unwrap(target), args: list?.type === 'ArrayExpression' ? upToSpread(list.elements, frame) : [] }
}

function upToSpread(nodes: ReadonlyArray<Node | null>, frame: Frame): Source[] {
  const end = nodes.findIndex((node) => node === null || node.type === 'SpreadElement')
  return nodes.slice(0, end === -1 ? undefined : end).map((node) => ({ node: node!, frame }))
}

function armsOf(frame: Frame): string[] {
  const arms: string[] = []
  for (let at: Frame | undefined = frame; at; at = at.parent) {
    if (at.arm) arms.push(`${at.arm.of.start}:${at.arm.index}`)
  }
  return arms
}
