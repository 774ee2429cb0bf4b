// What the expressions of a domain's sources stand for, as far as it leads to a tool: names are followed through assignments, calls, types and files.
import path from 'node:path'
import type { Class, Node, TSSignature, TSType } from 'oxc-parser'
import {
  type Call,
  type Definition,
  defined,
  type Expression,
  type FunctionInfo,
  list,
  lookup,
  type Members,
  type Scope,
  type Source,
} from './scopes.ts'
import { staticKey, unwrap } from './syntax.ts'

/** A value that leads to a tool. There is one object for each value. */
export type Value =
  /** The argument of the plugin's function, or of its constructor. */
  | { kind: 'tools' }
  | { kind: 'tool'; tool: string }
  | { kind: 'method'; tool: string; method: string }
  | { kind: 'instance' | 'class' | 'object'; of: Members }
  | { kind: 'function'; of: FunctionInfo }
  | { kind: 'module'; of: Source }
  /** Something of an interface or of a type literal. */
  | { kind: 'typed'; of: Expression }

/** Each round carries values one step further; no sources that people write need more. */
const MAX_ROUNDS = 32
/** Expressions that lead to expressions are followed that far. */
const MAX_STEPS = 200
const MAX_ALTERNATIVES = 16
/** A type may hold itself: it is followed that far. */
const MAX_TYPE_DEPTH = 8

/** The methods of `http` that register a route of the method that they are named after. */
export const SHORT_FORMS = ['get', 'post', 'put', 'patch', 'delete']

/** The calls that hand a callback something that leads to the database: the position of the callback (-1: the last), and of its parameter. */
const CALLBACKS: Readonly<Record<string, { argument: number; param: number; tool: string }>> = {
  'db.transaction': { argument: 0, param: 0, tool: 'tx' },
  'context.commit': { argument: 0, param: 0, tool: 'tx' },
  'event_bus.subscribe': { argument: 1, param: 2, tool: 'tx' },
  'http.addEndpoint': { argument: 2, param: 1, tool: 'context' },
  ...Object.fromEntries(SHORT_FORMS.map((name) => [`http.${name}`, { argument: -1, param: 1, tool: 'context' }])),
}

/**
 * The types of `#heddle` that say which tool a parameter is. Three names here are no tools: `tx` is a transaction, `queryable` the database or
 * a transaction, and `context` what a route's handler gets.
 */
const TOOL_OF_TYPE: Readonly<Record<string, string>> = {
  Auth: 'auth',
  Config: 'config',
  Db: 'db',
  Queryable: 'queryable',
  Tx: 'tx',
  HttpContext: 'context',
  EventBus: 'event_bus',
  Http: 'http',
  Logger: 'logger',
  Registry: 'registry',
  Scheduler: 'scheduler',
  State: 'state',
  Telemetry: 'telemetry',
}
/** Generic types that leave the members of their first argument as they are. */
const TRANSPARENT_TYPES = new Set(['Pick', 'Omit', 'Readonly', 'Partial', 'Required', 'NonNullable'])

export const isHeddle = (module: string): boolean => module === '#heddle' || module === 'heddle'

/**
 * The values of one domain. The order of statements does not count. What a function is given is known from its calls, and what a call reaches
 * from what functions are given: so all calls are looked at again, until nothing is new.
 */
export class Values {
  /** The calls of each function. */
  callers = new Map<FunctionInfo, Call[]>()
  readonly #sources: ReadonlyMap<string, Source>
  readonly #interned = new Map<unknown, Value>()
  readonly #exported = new Map<string, Definition>()
  readonly #slots = new Map<object, Map<string, object>>()
  /** What the runtime gives to a function. */
  #given = new Map<FunctionInfo, Array<{ index: number; value: Value }>>()
  /** What was found in this round; and in the one before, which counts where something leads to itself. */
  #known = new Map<object, readonly unknown[]>()
  #before = this.#known
  readonly #open = new Set<object>()
  #steps = 0

  /** @param sources of one domain, by their absolute paths */
  constructor(sources: ReadonlyMap<string, Source>) {
    this.#sources = sources
    for (const source of sources.values()) {
      for (const { imported, definitions } of source.root.names.values()) {
        const definition = imported && this.#importedFrom(source, imported.module, imported.name)
        if (definition) definitions.push(definition)
      }
    }
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
        return this.#ofAll(lookup(scope, node.name)?.definitions ?? [])
      case 'ThisExpression':
        return scope.self ? [this.#members('instance', scope.self)] : []
      case 'MemberExpression': {
        const key = staticKey(node.property, node.computed)
        return key ? this.evaluate(node.object, scope).flatMap((value) => this.#member(value, key)) : []
      }
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
        return this.evaluate(node.callee, scope).flatMap((value) => this.#instanceOf(value))
    }
    const fn = scope.source.functions.get(node)
    if (fn) return [this.#intern(fn, { kind: 'function', of: fn })]
    const members = scope.source.members.get(node)
    return members ? [this.#members(node.type === 'ObjectExpression' ? 'object' : 'class', members)] : []
  }

  #ofCall(callee: Node, args: readonly Node[], scope: Scope): Value[] {
    const key = callee.type === 'MemberExpression' ? staticKey(callee.property, callee.computed) : undefined
    if (key === 'bind') return this.evaluate((callee as { object: Node } & Node).object, scope)
    if (key === 'freeze' && args[0]) return this.evaluate(args[0], scope)
    return this.evaluate(callee, scope).flatMap((value) =>
      value.kind === 'function' ? this.#ofAll(value.of.returns) : [],
    )
  }

  #ofAll(definitions: readonly Definition[]): Value[] {
    return definitions.flatMap((each) => this.#once(each, () => this.#of(each)))
  }

  #of({ kind, node, scope, index, path }: Definition): Value[] {
    let values: Value[] = []
    if (kind === 'value') values = this.evaluate(node, scope)
    else if (kind === 'type') values = this.#ofType(node as TSType, scope, 0)
    else if (kind === 'module') values = [this.#intern(scope.source, { kind, of: scope.source })]
    else if (kind === 'argument') values = this.#ofArgument(scope.fn!, index!)
    return path.reduce((all, key) => all.flatMap((each) => this.#member(each, key)), values)
  }

  #ofArgument(fn: FunctionInfo, index: number): Value[] {
    const given = (this.#given.get(fn) ?? []).filter((each) => each.index === index).map(({ value }) => value)
    const passed = (this.callers.get(fn) ?? []).flatMap((call) => {
      const argument = plainCall(call).args[index]
      return argument ? this.evaluate(argument.node, argument.scope) : []
    })
    return [...given, ...passed]
  }

  #member(value: Value, key: string): Value[] {
    if (value.kind === 'tools') return [this.#tool(key)]
    if (value.kind === 'tool') {
      return [this.#intern(`${value.tool}.${key}`, { kind: 'method', tool: value.tool, method: key })]
    }
    if (value.kind === 'typed')
      return this.#once(this.#slot(value.of.node, key), () => this.#ofTypeMember(value.of, key))
    const own = this.#ofAll(this.#definitionsIn(value, key))
    if (value.kind !== 'object') return own
    // An object may be spread into itself, so objects that were spread into it are not followed.
    const spread = this.#ofAll(value.of.spread).filter(({ kind }) => kind !== 'object')
    return [...own, ...spread.flatMap((each) => this.#member(each, key))]
  }

  /** What a member of the value is defined as. */
  #definitionsIn(value: Value, key: string): Definition[] {
    if (value.kind === 'module') return [this.#exportOf(value.of, key) ?? []].flat()
    if (value.kind === 'object') return this.#ownDefinitions(value.of, key)
    if (value.kind !== 'instance' && value.kind !== 'class') return []
    for (const each of this.#classChain(value.of)) {
      const own = this.#ownDefinitions(each, key)
      if (own.length > 0) return own
    }
    return []
  }

  #ownDefinitions(of: Members, key: string): Definition[] {
    return this.#once(this.#slot(of, key), () => [
      ...(of.members.get(key) ?? []),
      ...(of.scope.source.assigned.get(key) ?? []).flatMap(({ object, definition }) =>
        this.evaluate(object.node, object.scope).some((value) => 'of' in value && value.of === of) ? [definition] : [],
      ),
    ])
  }

  /** The class and those that it extends, nearest first. */
  #classChain(of: Members): Members[] {
    const chain = new Set([of])
    // A set takes more while it is gone through.
    for (const { node, scope } of chain) {
      const { superClass } = node as Class
      for (const value of superClass ? this.evaluate(superClass, scope) : []) {
        if (value.kind === 'class') chain.add(value.of)
      }
    }
    return [...chain]
  }

  #constructorOf(of: Members): FunctionInfo | undefined {
    return this.#classChain(of).find(({ construct }) => construct)?.construct
  }

  // ── one object for each value, one answer for each question ──────────────

  #intern(key: unknown, value: Value): Value {
    const known = this.#interned.get(key)
    if (known) return known
    this.#interned.set(key, value)
    return value
  }

  #tool(tool: string): Value {
    return this.#intern(`tool ${tool}`, { kind: 'tool', tool })
  }

  #members(kind: 'instance' | 'class' | 'object', of: Members): Value {
    return this.#intern(kind === 'instance' ? of.node : of, { kind, of })
  }

  #instanceOf(value: Value): Value[] {
    return value.kind === 'class' ? [this.#members('instance', value.of)] : []
  }

  #slot(of: object, key: string): object {
    const slots = this.#slots.get(of) ?? new Map<string, object>()
    this.#slots.set(of, slots)
    const slot = slots.get(key) ?? {}
    slots.set(key, slot)
    return slot
  }

  #once<Item>(key: object, find: () => Item[]): Item[] {
    const known = this.#known.get(key)
    if (known) return known as Item[]
    if (this.#open.has(key)) return (this.#before.get(key) ?? []) as Item[]
    this.#open.add(key)
    const found = [...new Set(find())]
    this.#open.delete(key)
    this.#known.set(key, found)
    return found
  }

  // ── calls ─────────────────────────────────────────────────────────────────

  #settle(): void {
    for (let round = 0, size = -1; round < MAX_ROUNDS; round++) {
      this.#before = this.#known
      this.#known = new Map()
      const callers: Values['callers'] = new Map()
      const given: Array<[FunctionInfo | undefined, number, Value]> = []
      for (const { root, exports, calls } of this.#sources.values()) {
        const plugin = exports.has('default') ? this.#ofAll([this.#exportOf(root.source, 'default') ?? []].flat()) : []
        for (const value of plugin) {
          if (value.kind === 'class') given.push([this.#constructorOf(value.of), 0, this.#tools()])
        }
        for (const call of calls) {
          for (const fn of this.#functionsCalled(call)) list(callers, fn).push(call)
          given.push(...this.#givenBy(call))
        }
      }
      this.callers = callers
      this.#given = new Map()
      for (const [fn, index, value] of given) if (fn) list(this.#given, fn).push({ index, value })
      const sizes = [...this.#known.values(), ...callers.values(), given].map(({ length }) => length)
      const now = sizes.reduce((sum, each) => sum + each, 0)
      if (now === size) return
      size = now
    }
  }

  #tools(): Value {
    return this.#intern('tools', { kind: 'tools' })
  }

  #functionsCalled(call: Call): FunctionInfo[] {
    const { callee } = plainCall(call)
    const isSuper = callee.type === 'Super'
    const target = isSuper ? (call.scope.self?.node as Class | undefined)?.superClass : callee
    return (target ? this.evaluate(target, call.scope) : []).flatMap((value) => {
      if (value.kind === 'function') return value.of
      const constructs = value.kind === 'class' && (isSuper || call.node.type === 'NewExpression')
      return (constructs ? this.#constructorOf(value.of) : undefined) ?? []
    })
  }

  /** A parameter of a callback is a transaction, or the context of a request; the one of a plugin's function is its tools. */
  #givenBy(call: Call): Array<[FunctionInfo, number, Value]> {
    const { callee, args } = plainCall(call)
    const imported = callee.type === 'Identifier' ? lookup(call.scope, callee.name)?.imported : undefined
    if (imported?.name === 'plugin' && isHeddle(imported.module)) {
      return this.functionsOf(args[0]).map((fn) => [fn, 0, this.#tools()])
    }
    return this.evaluate(callee, call.scope).flatMap((value) => {
      const bound = value.kind === 'method' ? CALLBACKS[`${value.tool}.${value.method}`] : undefined
      const functions = bound ? this.functionsOf(args.at(bound.argument)) : []
      return functions.map((fn): [FunctionInfo, number, Value] => [fn, bound!.param, this.#tool(bound!.tool)])
    })
  }

  functionsOf(expression: Expression | undefined): FunctionInfo[] {
    const values = expression ? this.evaluate(expression.node, expression.scope) : []
    return values.flatMap((value) => (value.kind === 'function' ? value.of : []))
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
    const key = node.type === 'MemberExpression' ? staticKey(node.property, node.computed) : undefined
    let all: Definition[] = []
    if (node.type === 'Identifier') all = lookup(scope, node.name)?.definitions ?? []
    else if (node.type === 'MemberExpression' && key !== undefined) {
      all = this.evaluate(node.object, scope).flatMap((value) => this.#definitionsIn(value, key))
    }
    return all.filter(({ kind }) => kind !== 'type')
  }

  /** The name of the class that the file exports by default. */
  className({ exports, root }: Source): string | undefined {
    const exported = exports.get('default')
    if (!exported || !('node' in exported)) return undefined
    const { node } = this.resolve(exported)
    if (!root.source.members.has(node) || node.type === 'ObjectExpression') return undefined
    return (node as Class).id?.name ?? (exported.node.type === 'Identifier' ? exported.node.name : 'default')
  }

  // ── files ─────────────────────────────────────────────────────────────────

  #importedFrom(
    source: Source,
    specifier: string,
    name: string,
    seen?: Set<Definition | string>,
  ): Definition | undefined {
    const target = this.#sources.get(path.resolve(path.dirname(source.file), specifier))
    if (!target || !specifier.startsWith('.')) return undefined
    if (name !== '*') return this.#exportOf(target, name, seen)
    return { kind: 'module', node: target.syntax.program, scope: target.root, path: [] }
  }

  #exportOf(source: Source, name: string, seen = new Set<Definition | string>()): Definition | undefined {
    const key = `${source.file}\0${name}`
    const known = this.#exported.get(key)
    if (known || seen.has(key)) return known
    seen.add(key)
    const entry = source.exports.get(name)
    let found: Definition | undefined
    if (entry)
      found =
        'node' in entry ? defined(entry.node, entry.scope) : this.#importedFrom(source, entry.from, entry.name, seen)
    else if (name !== 'default') {
      for (const from of source.exportsAll) found ??= this.#importedFrom(source, from, name, seen)
    }
    if (found) this.#exported.set(key, found)
    return found
  }

  // ── types ─────────────────────────────────────────────────────────────────

  #ofType(type: TSType, scope: Scope, depth: number): Value[] {
    if (depth > MAX_TYPE_DEPTH) return []
    switch (type.type) {
      case 'TSUnionType':
      case 'TSIntersectionType':
        return type.types.flatMap((each) => this.#ofType(each, scope, depth + 1))
      case 'TSIndexedAccessType': {
        const index = type.indexType.type === 'TSLiteralType' ? type.indexType.literal : undefined
        if (index?.type !== 'Literal' || typeof index.value !== 'string') return []
        const key = index.value
        return this.#ofType(type.objectType, scope, depth + 1).flatMap((value) => this.#member(value, key))
      }
      case 'TSTypeLiteral':
        return [this.#intern(type, { kind: 'typed', of: { node: type, scope } })]
      case 'TSParenthesizedType':
        return this.#ofType(type.typeAnnotation, scope, depth + 1)
      case 'TSImportType':
        return type.qualifier?.type === 'Identifier'
          ? this.#ofImportedType(scope.source, type.source.value, type.qualifier.name, depth)
          : []
      case 'TSTypeReference': {
        const { typeName: name, typeArguments } = type
        if (name.type === 'Identifier') return this.#ofTypeName(name.name, scope, typeArguments?.params[0], depth)
        const module = name.type === 'TSQualifiedName' && name.left.type === 'Identifier' ? name.left.name : undefined
        const imported = module === undefined ? undefined : lookup(scope, module)?.imported
        return imported?.name === '*' && name.type === 'TSQualifiedName'
          ? this.#ofImportedType(scope.source, imported.module, name.right.name, depth)
          : []
      }
      default:
        return []
    }
  }

  #ofTypeName(name: string, scope: Scope, argument: TSType | undefined, depth: number): Value[] {
    if (TRANSPARENT_TYPES.has(name) && argument) return this.#ofType(argument, scope, depth + 1)
    const known = lookup(scope, name)
    if (known?.imported) return this.#ofImportedType(scope.source, known.imported.module, known.imported.name, depth)
    const declared = scope.source.types.get(name)
    if (declared?.type === 'TSTypeAliasDeclaration') {
      return this.#ofType(declared.typeAnnotation, scope.source.root, depth + 1)
    }
    if (declared) return [this.#intern(declared, { kind: 'typed', of: { node: declared, scope: scope.source.root } })]
    return this.#ofAll(known?.definitions ?? []).flatMap((value) => this.#instanceOf(value))
  }

  #ofImportedType(source: Source, module: string, name: string, depth: number): Value[] {
    if (isHeddle(module)) {
      if (name === 'Tools' || name === 'ToolsIn') return [this.#tools()]
      const tool = TOOL_OF_TYPE[name]
      return tool ? [this.#tool(tool)] : []
    }
    const found = this.#importedFrom(source, module, name)
    if (found?.node.type === 'Identifier') return this.#ofTypeName(found.node.name, found.scope, undefined, depth + 1)
    return found ? this.#ofAll([found]).flatMap((value) => this.#instanceOf(value)) : []
  }

  #ofTypeMember({ node, scope }: Expression, key: string): Value[] {
    let signatures: readonly TSSignature[] = []
    let inherited: Value[] = []
    if (node.type === 'TSTypeLiteral') signatures = node.members
    if (node.type === 'TSInterfaceDeclaration') {
      signatures = node.body.body
      inherited = node.extends.flatMap(({ expression, typeArguments }) =>
        expression.type === 'Identifier' ? this.#ofTypeName(expression.name, scope, typeArguments?.params[0], 0) : [],
      )
    }
    const own = signatures.flatMap((each) =>
      each.type === 'TSPropertySignature' && each.typeAnnotation && staticKey(each.key as Node, each.computed) === key
        ? this.#ofType(each.typeAnnotation.typeAnnotation, scope, 0)
        : [],
    )
    return [...own, ...inherited.flatMap((value) => this.#member(value, key))]
  }
}

/** The callee of a call, and its arguments up to the first spread: those after it have no known position. */
export function plainCall({ node, scope }: Call): { callee: Node; args: Expression[] } {
  const end = node.arguments.findIndex(({ type }) => type === 'SpreadElement')
  const known = node.arguments.slice(0, end === -1 ? undefined : end)
  return { callee: unwrap(node.callee), args: known.map((each) => ({ node: each, scope })) }
}

const isWhole = ({ kind, path }: Definition): boolean => kind === 'value' && path.length === 0
