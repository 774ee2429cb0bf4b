import type { Node } from 'oxc-parser'
import { type Literal, stringsOf } from '../literal.ts'
import type { LiteralReader } from '../literal-reader.ts'
import { tablesOf } from '../sql-tables.ts'
import { staticKey, unwrap } from '../syntax.ts'
import { branchesOf, plainCall } from '../tool-calls.ts'
import type { Evaluator } from './evaluator.ts'
import { type Call, type Expression, type FlowGraph, type FunctionInfo, lookup, type Scope } from './graph.ts'
import type { Effects } from './summary.ts'

/** One call in a function. */
export interface Step {
  /** Of the callee's last character. */
  offset: number
  /** What the called tool does by itself. */
  own: Effects
  /** The event that it publishes, when it does; what is known of its name. */
  event: Literal | undefined
  /** Functions of this file that it calls, or that the called method calls: a callback. */
  callees: FunctionInfo[]
  /** What functions of other files do that it calls. */
  elsewhere: Effects[]
  /** Functions that run within a transaction that this call begins. */
  inTransaction: FunctionInfo[]
  branches: readonly string[]
}

const NOTHING: Effects = { writes: false, publishes: false, outside: [] }
const SQL_TOOLS = new Set(['db', 'tx', 'queryable'])
const SQL_METHODS = new Set(['query', 'queryOne', 'execute'])
/** The methods that begin a transaction: the first argument runs within it. */
const TRANSACTIONS = new Set(['db.transaction', 'context.commit'])
/** Methods of arrays and promises that call their arguments before the work around them goes on. */
const CALLS_ARGUMENTS = new Set(
  'map forEach flatMap filter reduce find some every then catch finally startActiveSpan'.split(' '),
)
const READS = /^[\s(]*(?:SELECT|WITH|EXPLAIN|PRAGMA|SHOW|VALUES)\b/i
const WRITES = /^\s*(?:INSERT|UPDATE|DELETE|REPLACE|MERGE)\b/i

/** Says of each function of a file what it does with the database and the event bus, itself and through the functions that it calls. */
export class FunctionEffects {
  readonly steps = new Map<FunctionInfo, Step[]>()
  readonly #graph: FlowGraph
  readonly #evaluator: Evaluator
  readonly #literals: LiteralReader
  readonly #known = new Map<FunctionInfo, Effects>()

  constructor(graph: FlowGraph, evaluator: Evaluator, literals: LiteralReader) {
    this.#graph = graph
    this.#evaluator = evaluator
    this.#literals = literals
    for (const call of graph.calls) {
      const { fn } = call.scope
      const step = fn && this.#stepOf(call)
      if (!step) continue
      const steps = this.steps.get(fn)
      if (steps) steps.push(step)
      else this.steps.set(fn, [step])
    }
  }

  /** What the function does, with all that it calls. */
  of(fn: FunctionInfo): Effects {
    let effects = this.#known.get(fn)
    if (effects === undefined) {
      const all = this.#reached(fn, ({ callees }) => callees)
      // Whatever may be called is not what is called: a helper that takes a callback calls another one elsewhere.
      const certain = this.#reached(fn, ({ callees }) => (callees.length === 1 ? callees : []))
      effects = { ...all, outside: certain.outside }
      this.#known.set(fn, effects)
    }
    return effects
  }

  /** What the call does, with all that it calls. */
  ofStep({ own, callees, elsewhere }: Step): Effects {
    const called = callees.map((fn) => this.of(fn))
    return union([own, ...elsewhere, ...(callees.length === 1 ? called : called.map(withoutOutside))])
  }

  #reached(from: FunctionInfo, next: (step: Step) => FunctionInfo[]): Effects {
    const reached = new Set([from])
    const found: Effects[] = []
    // A set takes more while it is gone through.
    for (const fn of reached) {
      for (const step of this.steps.get(fn) ?? []) {
        found.push(step.own, ...step.elsewhere)
        for (const callee of next(step)) reached.add(callee)
      }
    }
    return union(found)
  }

  // ── one call ──────────────────────────────────────────────────────────────

  #stepOf({ node, scope }: Call): Step | undefined {
    const { callee, args } = node.type === 'CallExpression' ? plainCall(node, scope) : { callee: node.callee, args: [] }
    const values = [...new Set(this.#evaluator.evaluate(callee, scope))]
    const methods = values.flatMap((value) => (value.kind === 'method' ? [value] : []))
    const step: Step = {
      offset: callee.end - 1,
      own: NOTHING,
      event: undefined,
      callees: values.flatMap((value) => (value.kind === 'function' ? [value.info] : [])),
      elsewhere: values.flatMap((value) => (value.kind === 'summary' ? (value.summary.effects ?? []) : [])),
      inTransaction: [],
      branches: branchesOf(scope),
    }
    for (const { tool, method } of methods) this.#addCall(step, tool, method, args)
    // A helper that is given the database here and a transaction there: nobody knows which it is.
    if (new Set(methods.map(({ tool }) => tool)).size > 1) step.own = withoutOutside(step.own)
    if (isFetch(callee, scope)) step.own = { ...step.own, outside: ['fetch'] }
    if (methods.length === 0) step.callees.push(...this.#callbacks(callee, node.arguments, scope))
    const isEmpty =
      step.own === NOTHING && step.callees.length + step.elsewhere.length + step.inTransaction.length === 0
    return isEmpty ? undefined : step
  }

  #addCall(step: Step, tool: string, method: string, args: readonly Expression[]): void {
    const name = `${tool}.${method}`
    const own = { ...step.own }
    if (SQL_TOOLS.has(tool) && SQL_METHODS.has(method)) own.writes ||= this.#isWrite(method, args[0])
    if (TRANSACTIONS.has(name)) {
      step.inTransaction = this.#functionsOf(args[0])
      step.callees.push(...step.inTransaction)
      if (step.inTransaction.length === 0) own.writes = true
    }
    if (name === 'event_bus.subscribe' && isTransactional(args[2]?.node))
      step.inTransaction = this.#functionsOf(args[1])
    if (name === 'event_bus.publish') {
      own.publishes = true
      step.event = args[0] && this.#literals.read(args[0].node, args[0].scope)
    }
    if (tool === 'db' || tool === 'event_bus') own.outside = [...own.outside, name]
    step.own = own
  }

  /** A statement that the source does not show is taken as a write when it goes to `execute`. */
  #isWrite(method: string, sql: Expression | undefined): boolean {
    const texts = sql === undefined ? [] : stringsOf(this.#literals.read(sql.node, sql.scope))
    if (texts.length === 0) return method === 'execute'
    return texts.some(({ parts }) => {
      const text = parts.map((part) => part.text).join('')
      if (WRITES.test(text) || tablesOf(text).some(({ role }) => role !== 'read' && role !== 'reference')) return true
      return method === 'execute' && !READS.test(text)
    })
  }

  /** Functions among the arguments that the call runs before it is done. */
  #callbacks(callee: Node, args: readonly Node[], scope: Scope): FunctionInfo[] {
    const target = unwrap(callee)
    const isPromise = target.type === 'Identifier' && target.name === 'Promise'
    const key = target.type === 'MemberExpression' ? staticKey(target.property, target.computed) : undefined
    if (!isPromise && (key === undefined || !CALLS_ARGUMENTS.has(key))) return []
    return args.flatMap((node) => (node.type === 'SpreadElement' ? [] : this.#functionsOf({ node, scope })))
  }

  #functionsOf(expression: Expression | undefined): FunctionInfo[] {
    if (expression === undefined) return []
    const values = new Set(this.#evaluator.evaluate(expression.node, expression.scope))
    return [...values].flatMap((value) => (value.kind === 'function' ? [value.info] : []))
  }

  /** The functions of this file that do anything of it. */
  all(): Map<FunctionInfo, Effects> {
    const all = [...this.#graph.functions.values()].map((fn) => [fn, this.of(fn)] as const)
    return new Map(all.filter(([, effects]) => hasEffects(effects)))
  }
}

function hasEffects({ writes, publishes, outside }: Effects): boolean {
  return writes || publishes || outside.length > 0
}

function union(all: readonly Effects[]): Effects {
  return {
    writes: all.some(({ writes }) => writes),
    publishes: all.some(({ publishes }) => publishes),
    outside: [...new Set(all.flatMap(({ outside }) => outside))],
  }
}

const withoutOutside = (effects: Effects): Effects => ({ ...effects, outside: [] })

function isFetch(callee: Node, scope: Scope): boolean {
  const target = unwrap(callee)
  if (target.type === 'Identifier') return target.name === 'fetch' && lookup(scope, 'fetch') === undefined
  if (target.type !== 'MemberExpression' || staticKey(target.property, target.computed) !== 'fetch') return false
  const object = unwrap(target.object)
  return object.type === 'Identifier' && object.name === 'globalThis'
}

/** `{ transaction: true }` */
function isTransactional(options: Node | undefined): boolean {
  if (options?.type !== 'ObjectExpression') return false
  return options.properties.some(
    (each) =>
      each.type === 'Property' &&
      staticKey(each.key, each.computed) === 'transaction' &&
      each.value.type === 'Literal' &&
      each.value.value === true,
  )
}
