// Functions that write rows and publish about them apart, and calls within a transaction that do not belong to it.
import type { Node } from 'oxc-parser'
import { errorAt, type Finding, warningAt } from './finding.ts'
import {
  branchesOf,
  type Call,
  type Expression,
  excludeEachOther,
  type FunctionInfo,
  list,
  lookup,
  reached,
  type Scope,
  type Source,
} from './scopes.ts'
import { tablesOf } from './sql-tables.ts'
import { keyOf, unwrap } from './syntax.ts'
import { joined, type Literal, stringsOf, type Texts, textOf } from './texts.ts'
import { isStatement } from './tool-calls.ts'
import { plainCall, type Values } from './values.ts'

const RULE = 'dual-write'

/** What a call or a function does. */
interface Effects {
  /** It sends SQL that changes something. */
  writes: boolean
  /** It publishes by `event_bus`. */
  publishes: boolean
  /** Its calls that belong to no transaction, such as `db.execute`. */
  outside: string[]
}

/** One call in a function. */
interface Step extends Effects {
  line: number
  /** The event that it publishes, when it does; what is known of its name. */
  event: Literal | undefined
  /** Functions that it calls, or that the called method calls: a callback. */
  callees: FunctionInfo[]
  /** Functions that run within a transaction that this call begins. */
  inTransaction: FunctionInfo[]
  branches: readonly string[]
}

/** Methods of arrays and promises that call their arguments before the work around them goes on. */
const CALLS_ARGUMENTS = new Set(
  'map forEach flatMap filter reduce find some every then catch finally startActiveSpan'.split(' '),
)
const READS = /^[\s(]*(?:SELECT|WITH|EXPLAIN|PRAGMA|SHOW|VALUES)\b/i
const WRITES = /^\s*(?:INSERT|UPDATE|DELETE|REPLACE|MERGE)\b/i

/** Looks at the functions of one domain. */
export class Transactions {
  readonly #calls = new Map<FunctionInfo, Call[]>()
  readonly #steps = new Map<FunctionInfo, Step[]>()
  readonly #known = new Map<FunctionInfo, Effects>()
  readonly #values: Values
  readonly #texts: Texts

  constructor(sources: Iterable<Source>, values: Values, texts: Texts) {
    this.#values = values
    this.#texts = texts
    for (const call of [...sources].flatMap(({ calls }) => calls)) {
      if (call.scope.fn) list(this.#calls, call.scope.fn).push(call)
    }
  }

  faultsOf({ file, functions }: Source): Finding[] {
    const found: Finding[] = []
    for (const fn of functions.values()) {
      const steps = this.#stepsOf(fn)
      const apart = this.#publishedApart(steps)
      if (apart) found.push(warningAt(RULE, file, apart.line, messageOfApart(apart)))
      for (const work of steps.flatMap(({ inTransaction }) => inTransaction)) {
        for (const [{ line }, call] of this.#callsOutside(work, new Set()))
          found.push(errorAt(RULE, file, line, messageOfOutside(call)))
      }
    }
    // The error says as much of the publish.
    const errors = new Set(found.filter(({ severity }) => severity === 'error').map(({ line }) => line))
    return found.filter(({ severity, line }) => severity === 'error' || !errors.has(line))
  }

  /** The first call that publishes, in a function with another one that writes. A call that does both by itself is a fault of what it calls. */
  #publishedApart(steps: readonly Step[]): Step | undefined {
    const does = steps.map((step) => ({ step, ...this.#effectsOfStep(step) }))
    const writes = does.filter((each) => each.writes && !each.publishes)
    return does.find(
      ({ step, publishes, writes: both }) =>
        publishes && !both && writes.some((other) => !excludeEachOther(other.step.branches, step.branches)),
    )?.step
  }

  /** The calls within the function that belong to no transaction, each with the name of what is called. */
  #callsOutside(fn: FunctionInfo, seen: Set<FunctionInfo>): Array<[Step, string]> {
    if (seen.has(fn)) return []
    seen.add(fn)
    return this.#stepsOf(fn).flatMap((step): Array<[Step, string]> => {
      const within = step.callees.filter((callee) => isWithin(callee, fn))
      const { outside } = this.#effectsOfStep(within.length > 0 ? { ...step, callees: [] } : step)
      return [
        ...outside.map((call): [Step, string] => [step, call]),
        ...within.flatMap((callee) => this.#callsOutside(callee, seen)),
      ]
    })
  }

  /** What the function does, with all that it calls. */
  #effectsOf(fn: FunctionInfo): Effects {
    const known = this.#known.get(fn)
    if (known) return known
    const all = this.#reached(fn, ({ callees }) => callees)
    // Whatever may be called is not what is called: a helper that takes a callback calls another one elsewhere.
    const { outside } = this.#reached(fn, ({ callees }) => (callees.length === 1 ? callees : []))
    this.#known.set(fn, { ...all, outside })
    return { ...all, outside }
  }

  #effectsOfStep(step: Step): Effects {
    const called = step.callees.map((fn) => this.#effectsOf(fn))
    return union([step, ...(called.length === 1 ? called : called.map((each) => ({ ...each, outside: [] })))])
  }

  #reached(from: FunctionInfo, next: (step: Step) => FunctionInfo[]): Effects {
    const all = reached([from], (fn) => this.#stepsOf(fn).flatMap(next))
    return union([...all].flatMap((fn) => this.#stepsOf(fn)))
  }

  #stepsOf(fn: FunctionInfo): Step[] {
    const steps = this.#steps.get(fn) ?? (this.#calls.get(fn) ?? []).map((call) => this.#stepOf(call))
    this.#steps.set(fn, steps)
    return steps
  }

  #stepOf(call: Call): Step {
    const { scope } = call
    const { callee, args } = plainCall(call)
    const values = this.#values.evaluate(callee, scope)
    const methods = values.flatMap((value) => (value.kind === 'method' ? [value] : []))
    const step: Step = {
      line: scope.source.syntax.lineOf(callee.end - 1),
      writes: false,
      publishes: false,
      outside: [],
      event: undefined,
      callees: values.filter((value) => value.kind === 'function'),
      inTransaction: [],
      branches: branchesOf(scope),
    }
    for (const { tool, method } of methods) {
      const name = `${tool}.${method}`
      if (isStatement(tool, method)) step.writes ||= this.#isWrite(method, args[0])
      if (name === 'db.transaction' || name === 'context.commit') {
        step.inTransaction = this.#values.functionsOf(args[0])
        step.callees.push(...step.inTransaction)
        step.writes ||= step.inTransaction.length === 0
      }
      if (name === 'event_bus.subscribe' && isTransactional(args[2]?.node)) {
        step.inTransaction = this.#values.functionsOf(args[1])
      }
      if (name === 'event_bus.publish') {
        step.publishes = true
        step.event = args[0] && this.#texts.read(args[0])
      }
      if (tool === 'db' || tool === 'event_bus') step.outside.push(name)
    }
    // A helper that is given the database here and a transaction there: nobody knows which it is.
    if (new Set(methods.map(({ tool }) => tool)).size > 1) step.outside = []
    if (isFetch(callee, scope)) step.outside.push('fetch')
    if (methods.length === 0 && callsArguments(callee)) {
      step.callees.push(...args.flatMap((each) => this.#values.functionsOf(each)))
    }
    return step
  }

  /** A statement that the source does not show is taken as a write when it goes to `execute`. */
  #isWrite(method: string, sql: Expression | undefined): boolean {
    const texts = sql === undefined ? [] : stringsOf(this.#texts.read(sql))
    if (texts.length === 0) return method === 'execute'
    return texts.some(({ parts }) => {
      const text = joined(parts)
      if (WRITES.test(text) || tablesOf(text).some(({ role }) => role !== 'read' && role !== 'reference')) return true
      return method === 'execute' && !READS.test(text)
    })
  }
}

function union(all: readonly Effects[]): Effects {
  return {
    writes: all.some(({ writes }) => writes),
    publishes: all.some(({ publishes }) => publishes),
    outside: [...new Set(all.flatMap(({ outside }) => outside))],
  }
}

function callsArguments(callee: Node): boolean {
  if (callee.type === 'Identifier') return callee.name === 'Promise'
  const key = keyOf(callee)
  return key !== undefined && CALLS_ARGUMENTS.has(key)
}

function isFetch(callee: Node, scope: Scope): boolean {
  if (callee.type === 'Identifier') return callee.name === 'fetch' && lookup(scope, 'fetch') === undefined
  if (callee.type !== 'MemberExpression' || keyOf(callee) !== 'fetch') return false
  const object = unwrap(callee.object)
  return object.type === 'Identifier' && object.name === 'globalThis'
}

/** `{ transaction: true }` */
function isTransactional(options: Node | undefined): boolean {
  if (options?.type !== 'ObjectExpression') return false
  return options.properties.some(
    (each) =>
      each.type === 'Property' &&
      keyOf(each) === 'transaction' &&
      each.value.type === 'Literal' &&
      each.value.value === true,
  )
}

function isWithin({ node }: FunctionInfo, outer: FunctionInfo): boolean {
  return node !== outer.node && node.start >= outer.node.start && node.end <= outer.node.end
}

function messageOfApart({ event }: Step): string {
  const name = textOf(event)
  const what = name === undefined ? 'an event' : `'${name}'`
  return `${what} is published apart from the SQL that the same function writes: a crash between the two leaves one without the other`
}

function messageOfOutside(call: string): string {
  if (call === 'fetch')
    return 'fetch within a transaction holds it open, and is made again when the transaction is repeated'
  const stays = call.startsWith('event_bus.') ? 'what it sends stays' : 'what it does stays'
  return `${call} within a transaction does not belong to it: ${stays} when the transaction is rolled back`
}
