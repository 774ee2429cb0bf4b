import type { Node } from 'oxc-parser'
import type { Call, Frame, FunctionInfo, Source } from './flow-graph.ts'
import type { Literal, LiteralReader } from './literal.ts'
import { staticKey, unwrap } from './syntax.ts'
import type { ToolFlow } from './tool-flow.ts'
import type { HandedCall } from './tool-value.ts'

/** A call of a tool's method, or of a function that hands its own arguments on to one. */
export interface ToolCallSite {
  tool: string
  method: string
  /** Up to the first spread: what comes after it has no known place. */
  args: ReadonlyArray<Source | Literal>
  /** Where the callee ends: the method's name. */
  offset: number
  /** Arms of branches that it stands in, each `<branch>:<arm>`. */
  arms: readonly string[]
}

/** How far arguments that functions hand on are followed. */
const MAX_HANDING_ON = 4
/** Sites of one file that are looked for behind functions: more of them were not written by hand. */
const MAX_HANDED_SITES = 10_000
/** An argument that was left out, or that comes after a spread. */
const UNKNOWN: Literal = { type: 'unknown', line: 0 }

/** Finds the calls of tools in one file. */
export class ToolCalls {
  readonly #flow: ToolFlow
  readonly #literals: LiteralReader
  #handedSites = 0

  constructor(flow: ToolFlow, literals: LiteralReader) {
    this.#flow = flow
    this.#literals = literals
  }

  /** Calls of functions of other files that hand arguments on among them. Notes which functions of this file do. */
  read(): ToolCallSite[] {
    const callers = this.#callersByFunction()
    const sites: ToolCallSite[] = []
    for (const { node, frame } of this.#flow.graph.calls) {
      if (node.type !== 'CallExpression') continue
      const { callee, args } = plainCall(node, frame)
      for (const { tool, method, args: taken } of this.#called(callee, frame)) {
        const given = taken?.map((arg) => (typeof arg === 'number' ? (args[arg] ?? UNKNOWN) : arg)) ?? args
        const site = { tool, method, args: given, offset: callee.end - 1, arms: armsOf(frame) }
        sites.push(...this.#handedOn(site, callers, []))
      }
    }
    return sites
  }

  /** The methods of tools that a call reaches, each once; `args` when it reaches them through a function of another file. */
  #called(callee: Node, frame: Frame): Array<{ tool: string; method: string; args?: HandedCall['args'] }> {
    return [...new Set(this.#flow.evaluate(callee, frame))].flatMap((value) => {
      if (value.kind === 'method') return [{ tool: value.tool, method: value.method }]
      return value.kind === 'shape' ? (value.shape.hands ?? []) : []
    })
  }

  /** The site itself, or, where its arguments are parameters of the function around it, the calls of that function. */
  #handedOn(
    site: ToolCallSite,
    callers: ReadonlyMap<FunctionInfo, Call[]>,
    inner: readonly FunctionInfo[],
  ): ToolCallSite[] {
    const around = site.args.slice(0, 2).flatMap((arg) => this.#parameter(arg)?.fn ?? [])[0]
    if (!around || inner.length === MAX_HANDING_ON) return [site]
    // A function that calls itself says nothing new.
    if (inner.includes(around)) return []
    this.#note(site, around)
    const calls = callers.get(around) ?? []
    this.#handedSites += calls.length
    if (calls.length === 0 || this.#handedSites > MAX_HANDED_SITES) return [site]
    return calls.flatMap(({ node, frame }) => {
      const { callee, args: given } = plainCall(node, frame)
      const args = site.args.map((arg) => {
        const parameter = this.#parameter(arg)
        return parameter?.fn === around ? (given[parameter.index] ?? UNKNOWN) : arg
      })
      const outer = { ...site, args, offset: callee.end - 1, arms: [...site.arms, ...armsOf(frame)] }
      return this.#handedOn(outer, callers, [...inner, around])
    })
  }

  /** For other files that call the function. */
  #note({ tool, method, args }: ToolCallSite, around: FunctionInfo): void {
    const handed: HandedCall = {
      tool,
      method,
      args: args.map((arg) => {
        const parameter = this.#parameter(arg)
        if (parameter?.fn === around) return parameter.index
        return 'node' in arg ? this.#literals.read(arg.node, arg.frame) : arg
      }),
    }
    this.#flow.handed.set(around, [...(this.#flow.handed.get(around) ?? []), handed])
  }

  /** Which parameter of which function the expression is, when it is nothing else. */
  #parameter(arg: Source | Literal): { fn: FunctionInfo; index: number } | undefined {
    if (!('node' in arg)) return undefined
    const name = unwrap(arg.node)
    if (name.type !== 'Identifier') return undefined
    let at: Frame | undefined = arg.frame
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
