import type { Node } from 'oxc-parser'
import type { ModuleExport, ModuleExports } from '../module-exports.ts'
import { staticKey, unwrap } from '../syntax.ts'
import type { Expression, Value } from './graph.ts'
import {
  type ClassInfo,
  type FlowGraph,
  type FunctionInfo,
  type Location,
  locationIn,
  lookup,
  type Scope,
} from './graph.ts'
import type { MemberSummary, Summary } from './summary.ts'
import type { Values } from './values.ts'

/** The exports of a file that this one imports from its own domain; undefined for any other module. */
export type ImportedModules = (specifier: string) => ModuleExports | undefined

/** Constants that stand for other constants are followed that far. */
const MAX_RESOLVE_STEPS = 32
const MAX_ALTERNATIVES = 16
const MAX_CLASS_DEPTH = 16

/** Says which values an expression of one file may have, as far as the locations of the graph have been filled. */
export class Evaluator {
  readonly #graph: FlowGraph
  readonly #values: Values
  readonly #modules: ImportedModules

  constructor(graph: FlowGraph, values: Values, modules: ImportedModules) {
    this.#graph = graph
    this.#values = values
    this.#modules = modules
  }

  /** Every value that the expression may have. */
  evaluate(expression: Node, scope: Scope): Value[] {
    const node = unwrap(expression)
    switch (node.type) {
      case 'Identifier':
        return this.#valuesOfName(node.name, scope)
      case 'ThisExpression':
        return scope.thisClass ? [this.#values.instance(scope.thisClass)] : []
      case 'MemberExpression': {
        const key = staticKey(node.property, node.computed)
        return key ? this.evaluate(node.object, scope).flatMap((value) => this.member(value, key)) : []
      }
      case 'LogicalExpression':
        return [...this.evaluate(node.left, scope), ...this.evaluate(node.right, scope)]
      case 'ConditionalExpression':
        return [...this.evaluate(node.consequent, scope), ...this.evaluate(node.alternate, scope)]
      case 'SequenceExpression':
        return node.expressions.length > 0 ? this.evaluate(node.expressions.at(-1)!, scope) : []
      case 'AssignmentExpression':
        return this.evaluate(node.right, scope)
      case 'CallExpression':
        return this.#valuesOfCall(node.callee, node.arguments, scope)
      case 'NewExpression':
        return this.evaluate(node.callee, scope).flatMap((value) => this.#instancesOf(value))
      default:
        return this.#valuesOfLiteral(node)
    }
  }

  /** The values that a member of the value may have. */
  member(value: Value, key: string): Value[] {
    if (value.kind === 'tools') return [this.#values.tool(key)]
    if (value.kind === 'tool') return [this.#values.method(value.tool, key)]
    if (value.kind === 'summary') return this.#ofSummaries(value.summary.members[key])
    const locations = this.#memberLocations(value, key)
    if (value.kind === 'instance' && locations.length === 0) return this.#importedMember(value.info, key)
    const values = locations.flatMap((location) => [...location.values])
    if (value.kind !== 'object' || value.info.members.has(key)) return values
    // An object may be spread into itself, so objects that were spread into it are not followed.
    const spread = [...value.info.spread.values].filter(({ kind }) => kind !== 'object')
    return [...values, ...spread.flatMap((each) => this.member(each, key))]
  }

  /** The locations that an assignment to `object.key` writes, made when there are none. */
  writableLocations(object: Node, key: string, scope: Scope): Location[] {
    return this.evaluate(object, scope).flatMap((value) => {
      if (value.kind !== 'instance' && value.kind !== 'class' && value.kind !== 'object') return []
      const found = this.#memberLocations(value, key)
      return found.length > 0 ? found : [locationIn(value.info.members, key)]
    })
  }

  /** The one expression that a constant name or member stands for, else the expression itself. */
  resolve(expression: Expression): Expression {
    let at: Expression = { node: unwrap(expression.node), scope: expression.scope }
    for (let steps = 0; steps < MAX_RESOLVE_STEPS; steps++) {
      const location = this.#locationOf(at)
      const next =
        location && !location.opaque && location.definitions.length === 1 ? location.definitions[0] : undefined
      if (!next) return at
      at = { node: unwrap(next.node), scope: next.scope }
    }
    return at
  }

  /** Every expression that a name may stand for, when there are several and all of them are known. */
  alternatives(expression: Expression): readonly Expression[] | undefined {
    const location = this.#locationOf(expression)
    if (!location || location.opaque) return undefined
    const { definitions } = location
    return definitions.length > 1 && definitions.length <= MAX_ALTERNATIVES ? definitions : undefined
  }

  /** The export that a name, or a member of a name, was imported from, and the keys within it. */
  imported(node: Node, scope: Scope): { from: ModuleExport; keys: readonly string[] } | undefined {
    const keys: string[] = []
    let at = unwrap(node)
    while (at.type === 'MemberExpression') {
      const key = staticKey(at.property, at.computed)
      if (key === undefined) return undefined
      keys.unshift(key)
      at = unwrap(at.object)
    }
    const origin = at.type === 'Identifier' ? lookup(scope, at.name)?.imported : undefined
    if (!origin) return undefined
    let exports = this.#modules(origin.module)
    let name: string | undefined = origin.name
    if (name === '*') name = keys.shift()
    for (;;) {
      const found: ModuleExport | undefined = name === undefined ? undefined : exports?.[name]
      if (!found?.module) return found && { from: found, keys }
      exports = found.module
      name = keys.shift()
    }
  }

  /** The instances of a type that a file of the domain exports. */
  importedType(module: string, name: string): Value[] {
    const found = this.#modules(module)?.[name]
    const instances = (found?.summaries ?? []).flatMap((each) => ('members' in each ? (each.instance ?? []) : []))
    return this.#ofSummaries([...(found?.type ?? []), ...instances])
  }

  defaultClass(): ClassInfo | undefined {
    const exported = this.#graph.defaultExport
    return exported && this.#graph.classes.get(this.resolve(exported).node)
  }

  /** The constructor of the class, or the one that it inherits from a class of the same file. */
  constructorOf(info: ClassInfo): FunctionInfo | undefined {
    return this.classChain(info).find(({ construct }) => construct)?.construct
  }

  /** The class and those of this file that it extends, nearest first. A class that extends itself ends the chain. */
  classChain(info: ClassInfo): ClassInfo[] {
    const chain: ClassInfo[] = []
    for (let at: ClassInfo | undefined = info; at && !chain.includes(at); at = this.superclassOf(at)) chain.push(at)
    return chain
  }

  superclassOf(info: ClassInfo): ClassInfo | undefined {
    const { superClass } = info.node
    return superClass ? this.#graph.classes.get(this.resolve({ node: superClass, scope: info.scope }).node) : undefined
  }

  #valuesOfName(name: string, scope: Scope): Value[] {
    const location = lookup(scope, name)
    if (!location) return []
    if (!location.imported) return [...location.values]
    const exports = this.#modules(location.imported.module)
    if (!exports) return []
    return location.imported.name === '*'
      ? [this.#namespace(exports)]
      : this.#valuesOfExport(exports[location.imported.name])
  }

  #valuesOfExport(exported: ModuleExport | undefined): Value[] {
    return exported?.module ? [this.#namespace(exported.module)] : this.#ofSummaries(exported?.summaries)
  }

  #namespace(module: ModuleExports): Value {
    return this.#values.ofMembers(module, () => summaryOfModule(module))
  }

  #valuesOfLiteral(node: Node): Value[] {
    const fn = this.#graph.functions.get(node)
    if (fn) return [this.#values.function(fn)]
    const info = this.#graph.classes.get(node)
    if (info) return [this.#values.class(info)]
    const object = this.#graph.objects.get(node)
    return object ? [this.#values.object(object)] : []
  }

  #valuesOfCall(callee: Node, args: readonly Node[], scope: Scope): Value[] {
    const target = unwrap(callee)
    if (target.type === 'MemberExpression') {
      const key = staticKey(target.property, target.computed)
      if (key === 'bind') return this.evaluate(target.object, scope)
      if (key === 'freeze' && args[0]) return this.evaluate(args[0], scope)
    }
    return this.evaluate(target, scope).flatMap((value) => {
      if (value.kind === 'function') return [...value.info.returns.values]
      return value.kind === 'summary' ? this.#ofSummaries(value.summary.returns) : []
    })
  }

  #instancesOf(value: Value): Value[] {
    if (value.kind === 'class') return [this.#values.instance(value.info)]
    return value.kind === 'summary' ? this.#ofSummaries(value.summary.instance) : []
  }

  #ofSummaries(summaries: readonly Summary[] = []): Value[] {
    return summaries.map((summary) => this.#values.ofSummary(summary))
  }

  /** A member of a base class of another file. */
  #importedMember(info: ClassInfo, key: string): Value[] {
    let top = info
    for (let depth = 0; depth < MAX_CLASS_DEPTH; depth++) {
      const above = this.superclassOf(top)
      if (!above) break
      top = above
    }
    if (!top.node.superClass) return []
    const bases = this.evaluate(top.node.superClass, top.scope).filter(({ kind }) => kind === 'summary')
    return bases.flatMap((base) => this.#instancesOf(base)).flatMap((base) => this.member(base, key))
  }

  #memberLocations(value: Value, key: string): Location[] {
    if (value.kind === 'object') return value.info.members.has(key) ? [value.info.members.get(key)!] : []
    if (value.kind !== 'instance' && value.kind !== 'class') return []
    for (const { members } of this.classChain(value.info)) {
      const location = members.get(key)
      if (location) return [location]
    }
    return []
  }

  #locationOf({ node, scope }: Expression): Location | undefined {
    if (node.type === 'Identifier') return lookup(scope, node.name)
    if (node.type !== 'MemberExpression') return undefined
    const key = staticKey(node.property, node.computed)
    if (!key) return undefined
    const locations = this.evaluate(node.object, scope).flatMap((value) => this.#memberLocations(value, key))
    return locations.length === 1 ? locations[0] : undefined
  }
}

function summaryOfModule(module: ModuleExports): MemberSummary {
  const members: Record<string, Summary[]> = {}
  for (const [name, { summaries, module: inner }] of Object.entries(module)) {
    members[name] = inner ? [summaryOfModule(inner)] : (summaries ?? [])
  }
  return { members }
}
