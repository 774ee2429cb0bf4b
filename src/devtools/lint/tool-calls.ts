// The calls of tools in one domain, each where its arguments are known: a function that hands its own on counts where it is called.
import { branchesOf, type Call, type Expression, type FunctionInfo, list, lookup, type Source } from './scopes.ts'
import { unwrap } from './syntax.ts'
import { type Literal, seenFrom, type Texts } from './texts.ts'
import { plainCall, type Values } from './values.ts'

/** A call of a tool's method. */
export interface ToolCall {
  tool: string
  method: string
  line: number
  /** The arguments up to the first spread: those after it have no known position. */
  args: Literal[]
  /** The branches that it stands in, each `<node>:<index>`. Of two branches of one node at most one runs. */
  branches: readonly string[]
}

interface Site extends Pick<ToolCall, 'tool' | 'method' | 'branches'> {
  call: Call
  /** Undefined for one that was left out. */
  args: ReadonlyArray<Expression | undefined>
}

/** Most functions that are followed one behind the other, each forwarding its arguments to the next. */
const MAX_FORWARDING_DEPTH = 4
/** Callers of such functions that are followed in one domain; no domain that people write has more. */
const MAX_FORWARDED_SITES = 10_000

/** True when the first argument is SQL that is sent. */
export function isStatement(tool: string, method: string): boolean {
  return ['db', 'tx', 'queryable'].includes(tool) && ['query', 'queryOne', 'execute'].includes(method)
}

/** The calls by the file that they stand in. */
export function toolCallsOf(sources: Iterable<Source>, values: Values, texts: Texts): Map<Source, ToolCall[]> {
  const found = new Map<Source, ToolCall[]>()
  let forwarded = 0
  const follow = (site: Site, inner: readonly FunctionInfo[]): Site[] => {
    const around = site.args.slice(0, 2).flatMap((arg) => parameter(arg)?.fn ?? [])[0]
    if (!around || inner.length === MAX_FORWARDING_DEPTH) return [site]
    // A function that calls itself adds nothing.
    if (inner.includes(around)) return []
    const calls = values.callers.get(around) ?? []
    forwarded += calls.length
    if (calls.length === 0 || forwarded > MAX_FORWARDED_SITES) return [site]
    return calls.flatMap((call) => {
      const given = plainCall(call).args
      const args = site.args.map((arg) => {
        const own = parameter(arg)
        return own?.fn === around ? given[own.index] : arg
      })
      const branches = [...site.branches, ...branchesOf(call.scope)]
      return follow({ ...site, call, args, branches }, [...inner, around])
    })
  }
  for (const call of [...sources].flatMap(({ calls }) => calls)) {
    if (call.node.type !== 'CallExpression') continue
    const { callee, args } = plainCall(call)
    for (const value of values.evaluate(callee, call.scope)) {
      if (value.kind !== 'method') continue
      const { tool, method } = value
      for (const site of follow({ tool, method, call, args, branches: branchesOf(call.scope) }, [])) {
        list(found, site.call.scope.source).push(readSite(site, texts))
      }
    }
  }
  return found
}

function readSite({ tool, method, call, args, branches }: Site, texts: Texts): ToolCall {
  // The last character of the callee belongs to the method's name.
  const line = call.scope.source.syntax.lineOf(plainCall(call).callee.end - 1)
  const literals = args.map((arg): Literal => {
    return arg ? seenFrom(call.scope, arg.scope, texts.read(arg), line) : { type: 'unknown', line }
  })
  return { tool, method, line, branches, args: literals }
}

/** The parameter that the expression is, when it is nothing else. */
function parameter(arg: Expression | undefined): { fn: FunctionInfo; index: number } | undefined {
  const node = arg && unwrap(arg.node)
  if (node?.type !== 'Identifier') return undefined
  const [only, ...others] = (lookup(arg!.scope, node.name) ?? []).filter(({ kind }) => kind !== 'type')
  if (only?.kind !== 'argument' || others.length + only.path.length > 0) return undefined
  return { fn: only.scope.fn!, index: only.index! }
}
