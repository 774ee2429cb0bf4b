import type { Node } from 'oxc-parser'
import type { Call, Expression, FunctionInfo, Scope } from './flow/graph.ts'
import type { ForwardedCall } from './flow/summary.ts'
import type { ToolFlow } from './flow/tool-flow.ts'
import type { Literal } from './literal.ts'
import type { LiteralReader } from './literal-reader.ts'
import { staticKey, unwrap } from './syntax.ts'

/** A call of a tool's method, or of a function that forwards its own arguments to one. */
export interface ToolCallSite {
  tool: string
  method: string
  /** The arguments up to the first spread: those after it have no known position. */
  args: ReadonlyArray<Expression | Literal>
  /** Offset of the callee's last character, which belongs to the method's name. */
  offset: number
  /** The branches that it stands in, each `<node>:<index>`. */
  branches: readonly string[]
}

/** Most functions that are followed one behind the other, each forwarding its arguments to the next. */
const MAX_FORWARDING_DEPTH = 4
/** Callers of such functions that are followed in one file; no file that people write has more. */
const MAX_FORWARDED_SITES = 10_000
/** An argument that was left out, or that comes after a spread. */
const UNKNOWN: Literal = { type: 'unknown', line: 0 }

/** Finds the calls of tools in one file. */
export class ToolCalls {
  readonly #flow: ToolFlow
  readonly #literals: LiteralReader
  #forwardedSites = 0

  constructor(flow: ToolFlow, literals: LiteralReader) {
    this.#flow = flow
    this.#literals = literals
  }

  /** Includes calls of other files' functions that forward arguments. Notes which functions of this file do so. */
  read(): ToolCallSite[] {
    const callers = this.#callersByFunction()
    const sites: ToolCallSite[] = []
    for (const { node, scope } of this.#flow.graph.calls) {
      if (node.type !== 'CallExpression') continue
      const { callee, args } = plainCall(node, scope)
      for (const { tool, method, args: taken } of this.#called(callee, scope)) {
        const given = taken?.map((arg) => (typeof arg === 'number' ? (args[arg] ?? UNKNOWN) : arg)) ?? args
        const site = { tool, method, args: given, offset: callee.end - 1, branches: branchesOf(scope) }
        sites.push(...this.#throughCallers(site, callers, []))
      }
    }
    return sites
  }

  /** The tool methods that a call reaches, each once. `args` is set when it reaches them through a function of another file. */
  #called(callee: Node, scope: Scope): Array<{ tool: string; method: string; args?: ForwardedCall['args'] }> {
    return [...new Set(this.#flow.evaluator.evaluate(callee, scope))].flatMap((value) => {
      if (value.kind === 'method') return [{ tool: value.tool, method: value.method }]
      return value.kind === 'summary' ? (value.summary.forwards ?? []) : []
    })
  }

  /** The site itself, or the calls of the function around it when its arguments are that function's parameters. */
  #throughCallers(
    site: ToolCallSite,
    callers: ReadonlyMap<FunctionInfo, Call[]>,
    inner: readonly FunctionInfo[],
  ): ToolCallSite[] {
    const around = site.args.slice(0, 2).flatMap((arg) => this.#parameter(arg)?.fn ?? [])[0]
    if (!around || inner.length === MAX_FORWARDING_DEPTH) return [site]
    // A function that calls itself adds nothing.
    if (inner.includes(around)) return []
    this.#noteForwarded(site, around)
    const calls = callers.get(around) ?? []
    this.#forwardedSites += calls.length
    if (calls.length === 0 || this.#forwardedSites > MAX_FORWARDED_SITES) return [site]
    return calls.flatMap(({ node, scope }) => {
      const { callee, args: given } = plainCall(node, scope)
      const args = site.args.map((arg) => {
        const parameter = this.#parameter(arg)
        return parameter?.fn === around ? (given[parameter.index] ?? UNKNOWN) : arg
      })
      const outer = { ...site, args, offset: callee.end - 1, branches: [...site.branches, ...branchesOf(scope)] }
      return this.#throughCallers(outer, callers, [...inner, around])
    })
  }

  /** Keeps the call for other files that call the function. */
  #noteForwarded({ tool, method, args }: ToolCallSite, around: FunctionInfo): void {
    const call: ForwardedCall = {
      tool,
      method,
      args: args.map((arg) => {
        const parameter = this.#parameter(arg)
        if (parameter?.fn === around) return parameter.index
        return 'node' in arg ? this.#literals.read(arg.node, arg.scope) : arg
      }),
    }
    const { forwarded } = this.#flow.summarizer
    forwarded.set(around, [...(forwarded.get(around) ?? []), call])
  }

  /** The parameter that the expression is, when it is nothing else. */
  #parameter(arg: Expression | Literal): { fn: FunctionInfo; index: number } | undefined {
    if (!('node' in arg)) return undefined
    const name = unwrap(arg.node)
    if (name.type !== 'Identifier') return undefined
    let at: Scope | undefined = arg.scope
    while (at && !at.names.has(name.name)) at = at.parent
    const fn = at?.fn
    if (!fn || fn.scope !== at || at.names.get(name.name)!.definitions.length > 0) return undefined
    const index = fn.params.findIndex((param) => param.type === 'Identifier' && param.name === name.name)
    return index === -1 ? undefined : { fn, index }
  }

  #callersByFunction(): Map<FunctionInfo, Call[]> {
    const callers = new Map<FunctionInfo, Call[]>()
    for (const call of this.#flow.graph.calls) {
      if (call.node.type !== 'CallExpression') continue
      for (const value of this.#flow.evaluator.evaluate(plainCall(call.node, call.scope).callee, call.scope)) {
        if (value.kind !== 'function') continue
        const known = callers.get(value.info)
        if (!known) callers.set(value.info, [call])
        else if (!known.includes(call)) known.push(call)
      }
    }
    return callers
  }
}

/** The callee and arguments of a call; also of `f.call(self, …)`, `f.apply(self, […])` and `Reflect.apply(f, self, […])`. */
export function plainCall(node: Call['node'], scope: Scope): { callee: Node; args: Expression[] } {
  const callee = unwrap(node.callee)
  const plain = { callee, args: upToSpread(node.arguments, scope) }
  if (callee.type !== 'MemberExpression') return plain
  const key = staticKey(callee.property, callee.computed)
  const object = unwrap(callee.object)
  if (key === 'call') return { callee: object, args: plain.args.slice(1) }
  if (key !== 'apply') return plain
  const isReflect = object.type === 'Identifier' && object.name === 'Reflect'
  const target = isReflect ? node.arguments[0] : object
  const list = node.arguments[isReflect ? 2 : 1]
  if (!target) return plain
  return { callee: unwrap(target), args: list?.type === 'ArrayExpression' ? upToSpread(list.elements, scope) : [] }
}

function upToSpread(nodes: ReadonlyArray<Node | null>, scope: Scope): Expression[] {
  const end = nodes.findIndex((node) => node === null || node.type === 'SpreadElement')
  return nodes.slice(0, end === -1 ? undefined : end).map((node) => ({ node: node!, scope }))
}

/** Each `<node>:<index>`: of two branches of one node at most one runs. */
export function branchesOf(scope: Scope): string[] {
  const branches: string[] = []
  for (let at: Scope | undefined = scope; at; at = at.parent) {
    if (at.branch) branches.push(`${at.branch.of.start}:${at.branch.index}`)
  }
  return branches
}
