// What the expressions of a domain's sources stand for, as far as it leads to a tool: names are followed through assignments, calls, types and files.
import type { Node, TSTypeParameterInstantiation } from 'oxc-parser'
import {
  type Call,
  type Definition,
  defined,
  type Expression,
  type FunctionInfo,
  type Import,
  imported,
  importOf,
  list,
  lookup,
  type Members,
  relativeTarget,
  type Scope,
  type Source,
  typeMembers,
} from './scopes.ts'
import { keyOf, staticKey, unwrap } from './syntax.ts'

/** A value that leads to a tool. There is one object for each value. */
export type Value =
  /** The argument of the plugin's function, or of its constructor. */
  | { kind: 'tools' }
  | { kind: 'tool'; tool: string }
  | { kind: 'method'; tool: string; method: string }
  /** All of `#heddle`. */
  | { kind: 'heddle' }
  | FunctionInfo
  | Members

/** Each round carries values one step further; no sources that people write need more. */
const MAX_ROUNDS = 32
/** Expressions that lead to expressions are followed that far. */
const MAX_STEPS = 200
const MAX_ALTERNATIVES = 16
/** The methods of `http` that register a route of the method that they are named after. */
export const SHORT_FORMS = ['get', 'post', 'put', 'patch', 'delete']

/** The calls that hand a callback something that leads to the database: the position of the callback (-1: the last), and of its parameter with its type. */
const CALLBACKS: Readonly<Record<string, { argument: number; param: number; type: string }>> = {
  'db.transaction': { argument: 0, param: 0, type: 'Tx' },
  'context.commit': { argument: 0, param: 0, type: 'Tx' },
  'event_bus.subscribe': { argument: 1, param: 2, type: 'Tx' },
  'http.addEndpoint': { argument: 2, param: 1, type: 'HttpContext' },
  ...Object.fromEntries(SHORT_FORMS.map((name) => [`http.${name}`, { argument: -1, param: 1, type: 'HttpContext' }])),
}

/**
 * The types of `#heddle` that say which tool a parameter is. Three names here are no tools: `tx` is a transaction, `queryable` the database or
 * a transaction, and `context` what a route's handler gets.
 */
const TOOL_OF_TYPE: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    'Auth Config Db Http Logger Queryable Registry Scheduler State Telemetry Tx'
      .split(' ')
      .map((type) => [type, type.toLowerCase()]),
  ),
  EventBus: 'event_bus',
  HttpContext: 'context',
}
/** Generic types that leave the members of their first argument as they are. */
const TRANSPARENT_TYPES = new Set(['Pick', 'Omit', 'Readonly', 'Partial', 'Required', 'NonNullable'])

export const isHeddle = (module: string): boolean => module === '#heddle' || module === 'heddle'

const TOOLS: Value = { kind: 'tools' }
const HEDDLE: Value = { kind: 'heddle' }

/**
 * The values of one domain. The order of statements does not count. What a function is given is known from its calls, and what a call reaches
 * from what functions are given: so all calls are looked at again, until nothing is new.
 */
export class Values {
  /** The calls of each function. */
  callers = new Map<FunctionInfo, Call[]>()
  readonly #sources: ReadonlyMap<string, Source>
  /** Tools and their methods, by their names. */
  readonly #tools = new Map<string, Value>()
  readonly #slots = new Map<Members | FunctionInfo, Map<string, object>>()
  /** What parameters are given and members are assigned, by their slots. */
  #learned = new Map<object, Definition[]>()
  /** What was found in this round; and in the one before, which counts where something leads to itself. */
  #known = new Map<object, readonly Value[]>()
  #before = this.#known
  readonly #open = new Set<object>()
  #steps = 0

  /** @param sources of one domain, by their absolute paths */
  constructor(sources: ReadonlyMap<string, Source>) {
    this.#sources = sources
    this.#settle()
  }

  // ── what expressions stand for ────────────────────────────────────────────

  /** Every value that the expression may have. */
  evaluate(expression: Node, scope: Scope): Value[] {
    if (this.#steps > MAX_STEPS) return []
    this.#steps++
    const node = unwrap(expression)
    const found = this.#once(node, () => this.#evaluate(node, scope))
    this.#steps--
    return found
  }

  #evaluate(node: Node, scope: Scope): Value[] {
    switch (node.type) {
      case 'Identifier':
        return this.#ofAll(lookup(scope, node.name) ?? [])
      case 'ThisExpression':
        return scope.self ? [scope.self] : []
      case 'Super':
        return this.#ofAll(scope.self?.others ?? [])
      case 'MemberExpression':
        return this.#read(node.object, keyOf(node), scope)
      case 'LogicalExpression':
        return [...this.evaluate(node.left, scope), ...this.evaluate(node.right, scope)]
      case 'ConditionalExpression':
        return [...this.evaluate(node.consequent, scope), ...this.evaluate(node.alternate, scope)]
      case 'SequenceExpression':
        return this.evaluate(node.expressions.at(-1)!, scope)
      case 'AssignmentExpression':
        return this.evaluate(node.right, scope)
      case 'CallExpression':
        return this.#ofCall(unwrap(node.callee), node.arguments, scope)
      case 'NewExpression':
        return this.evaluate(node.callee, scope).filter(({ kind }) => kind === 'members')
      case 'TSTypeLiteral':
      case 'TSInterfaceDeclaration':
        return [typeMembers(node, scope)]
    }
    const found = scope.source.functions.get(node) ?? scope.source.members.get(node)
    return found ? [found] : this.#ofType(node, scope)
  }

  #ofCall(callee: Node, args: readonly Node[], scope: Scope): Value[] {
    const key = keyOf(callee)
    if (key === 'bind') return this.evaluate((callee as { object: Node } & Node).object, scope)
    if (key === 'freeze' && args[0]) return this.evaluate(args[0], scope)
    return this.evaluate(callee, scope).flatMap((value) =>
      value.kind === 'function' ? this.#ofAll(value.returns) : [],
    )
  }

  #ofType(type: Node, scope: Scope): Value[] {
    switch (type.type) {
      case 'TSUnionType':
      case 'TSIntersectionType':
        return type.types.flatMap((each) => this.evaluate(each, scope))
      case 'TSParenthesizedType':
        return this.evaluate(type.typeAnnotation, scope)
      case 'TSIndexedAccessType': {
        const { objectType, indexType } = type
        return this.#read(
          objectType,
          indexType.type === 'TSLiteralType' ? staticKey(indexType.literal, true) : undefined,
          scope,
        )
      }
      case 'TSQualifiedName':
        return this.#read(type.left, type.right.name, scope)
      case 'TSTypeReference':
        return this.#ofReference(type.typeName, type.typeArguments, scope)
      case 'TSInterfaceHeritage':
        return this.#ofReference(type.expression, type.typeArguments, scope)
      case 'TSImportType': {
        const name = type.qualifier?.type === 'Identifier' ? type.qualifier.name : '*'
        return this.#ofImport(scope.source, { module: type.source.value, name })
      }
      default:
        return []
    }
  }

  #ofReference(name: Node, args: TSTypeParameterInstantiation | null, scope: Scope): Value[] {
    const isTransparent = name.type === 'Identifier' && TRANSPARENT_TYPES.has(name.name)
    return this.evaluate((isTransparent ? args?.params[0] : undefined) ?? name, scope)
  }

  #ofAll(definitions: readonly Definition[]): Value[] {
    return definitions.flatMap((each) => this.#once(each, () => this.#of(each)))
  }

  #of({ kind, node, scope, index, from, path }: Definition): Value[] {
    let values: Value[] = []
    if (from) values = this.#ofImport(scope.source, from)
    else if (kind === 'argument') values = this.#ofAll(this.#learnedOf(scope.fn!, index!))
    else if (kind !== 'unknown') values = this.evaluate(node, scope)
    return path.reduce((all, key) => all.flatMap((each) => this.#member(each, key)), values)
  }

  #ofImport(source: Source, from: Import): Value[] {
    const { module, name } = from
    if (isHeddle(module)) return name === '*' ? [HEDDLE] : this.#ofHeddle(name)
    const target = this.#target(source, module)
    if (!target) return []
    return name === '*' ? [target.module] : this.#member(target.module, name)
  }

  /** What a type of `#heddle` stands for. */
  #ofHeddle(name: string): Value[] {
    if (name === 'Tools' || name === 'ToolsIn') return [TOOLS]
    const tool = TOOL_OF_TYPE[name]
    return tool ? [this.#tool(tool)] : []
  }

  #read(object: Node, key: string | undefined, scope: Scope): Value[] {
    return key === undefined ? [] : this.evaluate(object, scope).flatMap((value) => this.#member(value, key))
  }

  #member(value: Value, key: string): Value[] {
    switch (value.kind) {
      case 'tools':
        return [this.#tool(key)]
      case 'tool':
        return [this.#intern(`${value.tool}.${key}`, { kind: 'method', tool: value.tool, method: key })]
      case 'heddle':
        return this.#ofHeddle(key)
      case 'members':
        return this.#once(this.#slot(value, key), () => {
          const own = this.#ownDefinitions(value, key)
          if (own.length > 0) return this.#ofAll(own)
          return this.#ofAll(value.others).flatMap((each) => this.#member(each, key))
        })
      default:
        return []
    }
  }

  #ownDefinitions(of: Members, key: string): Definition[] {
    return [...(of.members.get(key) ?? []), ...this.#learnedOf(of, key)]
  }

  #learnedOf(of: Members | FunctionInfo, key: string | number): Definition[] {
    return this.#learned.get(this.#slot(of, String(key))) ?? []
  }

  // ── one object for each value, one answer for each question ──────────────

  #intern(name: string, value: Value): Value {
    const known = this.#tools.get(name) ?? value
    this.#tools.set(name, known)
    return known
  }

  #tool(tool: string): Value {
    return this.#intern(tool, { kind: 'tool', tool })
  }

  /** Stands for a member, or for a parameter by its position. */
  #slot(of: Members | FunctionInfo, key: string): object {
    const slots = this.#slots.get(of) ?? new Map<string, object>()
    this.#slots.set(of, slots)
    const slot = slots.get(key) ?? {}
    slots.set(key, slot)
    return slot
  }

  #once(key: object, find: () => Value[]): Value[] {
    const known = this.#known.get(key)
    if (known) return known as Value[]
    if (this.#open.has(key)) return (this.#before.get(key) ?? []) as Value[]
    this.#open.add(key)
    const found = [...new Set(find())]
    this.#open.delete(key)
    this.#known.set(key, found)
    return found
  }

  // ── calls and assignments ─────────────────────────────────────────────────

  #settle(): void {
    for (let round = 0, size = -1; round < MAX_ROUNDS; round++) {
      this.#before = this.#known
      this.#known = new Map()
      const callers = new Map<FunctionInfo, Call[]>()
      const learned = new Map<object, Definition[]>()
      const learn = (of: Members | FunctionInfo, key: string | number, definition: Definition): void =>
        void list(learned, this.#slot(of, String(key))).push(definition)
      for (const { module, calls, assignments } of this.#sources.values()) {
        for (const fn of this.#constructorsOf(this.#member(module, 'default'))) learn(fn, 0, givenAs('Tools', module))
        for (const call of calls) {
          for (const fn of this.#functionsCalled(call)) {
            list(callers, fn).push(call)
            for (const [index, { node, scope }] of plainCall(call).args.entries())
              learn(fn, index, defined(node, scope))
          }
          for (const { fn, param, type } of this.#givenBy(call)) learn(fn, param, givenAs(type, call))
        }
        for (const { object, key, definition } of assignments) {
          for (const value of this.evaluate(object.node, object.scope))
            if (value.kind === 'members') learn(value, key, definition)
        }
      }
      this.callers = callers
      this.#learned = learned
      const all = [this.#known, callers, learned].flatMap((found) => [...found.values()])
      const now = all.reduce((sum, { length }) => sum + length, 0)
      if (now === size) return
      size = now
    }
  }

  #constructorsOf(values: readonly Value[]): FunctionInfo[] {
    const members = values.flatMap((value) => (value.kind === 'members' ? this.#member(value, 'constructor') : []))
    return members.filter((value) => value.kind === 'function')
  }

  #functionsCalled({ node, scope }: Call): FunctionInfo[] {
    const values = this.evaluate(node.callee, scope)
    return [...values.filter((value) => value.kind === 'function'), ...this.#constructorsOf(values)]
  }

  /** The runtime gives a transaction or the context of a request to a callback, and its tools to a plugin's function. */
  #givenBy(call: Call): Array<{ fn: FunctionInfo; param: number; type: string }> {
    const { callee, args } = plainCall(call)
    const from = callee.type === 'Identifier' ? importOf(call.scope, callee.name) : undefined
    if (from?.name === 'plugin' && isHeddle(from.module)) {
      return this.functionsOf(args[0]).map((fn) => ({ fn, param: 0, type: 'Tools' }))
    }
    return this.evaluate(callee, call.scope).flatMap((value) => {
      const callback = value.kind === 'method' ? CALLBACKS[`${value.tool}.${value.method}`] : undefined
      return callback ? this.functionsOf(args.at(callback.argument)).map((fn) => ({ fn, ...callback })) : []
    })
  }

  functionsOf(expression: Expression | undefined): FunctionInfo[] {
    const values = expression ? this.evaluate(expression.node, expression.scope) : []
    return values.filter((value) => value.kind === 'function')
  }

  // ── constants ─────────────────────────────────────────────────────────────

  /** The one expression that a constant name or member stands for, else the expression itself. */
  resolve(expression: Expression): Expression {
    let at: Expression = { node: unwrap(expression.node), scope: expression.scope }
    for (let steps = 0; steps < MAX_STEPS; steps++) {
      const [next, ...others] = this.#definitionsOf(at)
      if (!next || others.length > 0 || !isWhole(next)) return at
      at = { node: unwrap(next.node), scope: next.scope }
    }
    return at
  }

  /** Every expression that a name may stand for, when there are several and all of them are known. */
  alternatives(expression: Expression): Expression[] | undefined {
    const all = this.#definitionsOf(expression)
    return all.length > 1 && all.length <= MAX_ALTERNATIVES && all.every(isWhole) ? all : undefined
  }

  #definitionsOf({ node, scope }: Expression): Definition[] {
    const key = keyOf(node)
    let all: Definition[] = []
    if (node.type === 'Identifier') all = lookup(scope, node.name) ?? []
    else if (node.type === 'MemberExpression' && key !== undefined) {
      all = this.evaluate(node.object, scope).flatMap((value) => this.#definitionsIn(value, key))
    }
    return all.flatMap((each) => this.#behindImport(each)).filter(({ kind }) => kind !== 'type')
  }

  #definitionsIn(value: Value, key: string, seen = new Set<Value>()): Definition[] {
    if (value.kind !== 'members' || seen.has(value)) return []
    seen.add(value)
    const own = this.#ownDefinitions(value, key)
    return own.length > 0 ? own : this.#ofAll(value.others).flatMap((each) => this.#definitionsIn(each, key, seen))
  }

  /** What an import stands for in the file that it is from, as far as that is one of the domain. */
  #behindImport(definition: Definition, seen = new Set<Definition>()): Definition[] {
    const { from, scope } = definition
    const target = from && !seen.has(definition) ? this.#target(scope.source, from.module) : undefined
    if (!target) return [definition]
    seen.add(definition)
    return this.#definitionsIn(target.module, from!.name).flatMap((each) => this.#behindImport(each, seen))
  }

  /** The name of the class that the file exports by default. */
  className({ module }: Source): string | undefined {
    const [exported] = module.members.get('default') ?? []
    if (!exported || exported.from) return undefined
    const { node } = this.resolve(exported)
    if (node.type !== 'ClassDeclaration' && node.type !== 'ClassExpression') return undefined
    return node.id?.name ?? (exported.node.type === 'Identifier' ? exported.node.name : 'default')
  }

  #target({ file }: Source, specifier: string): Source | undefined {
    return this.#sources.get(relativeTarget(file, specifier) ?? '')
  }
}

/** What the runtime gives, by its type. */
const givenAs = (type: string, { node, scope }: Expression): Definition => imported(node, scope, '#heddle', type)

/** The callee of a call, and its arguments up to the first spread: those after it have no known position. */
export function plainCall({ node, scope }: Call): { callee: Node; args: Expression[] } {
  const end = node.arguments.findIndex(({ type }) => type === 'SpreadElement')
  const known = node.arguments.slice(0, end === -1 ? undefined : end)
  return { callee: unwrap(node.callee), args: known.map((each) => ({ node: each, scope })) }
}

const isWhole = ({ kind, path }: Definition): boolean => kind === 'value' && path.length === 0
