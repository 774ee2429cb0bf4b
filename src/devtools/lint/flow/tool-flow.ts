import type { Node, Program, TSType } from 'oxc-parser'
import { staticKey, unwrap } from '../syntax.ts'
import { recordDefinitions, recordMemberDefinitions } from './definitions.ts'
import { Evaluator, type ImportedModules } from './evaluator.ts'
import { type Expression, type FlowGraph, type FunctionInfo, lookup, type Scope } from './graph.ts'
import { buildFlowGraph } from './graph-builder.ts'
import { Propagation } from './propagation.ts'
import { Summarizer } from './summarizer.ts'
import type { Summary } from './summary.ts'
import { isHeddle, ToolTypes } from './tool-types.ts'
import { Values } from './values.ts'

/**
 * Follows the injected tools through one file, under whatever names they travel: a points-to analysis that ignores the order of
 * statements. It starts from the plugin's function or constructor and from type annotations, and carries values on until nothing is new.
 */
export class ToolFlow {
  readonly graph: FlowGraph
  readonly evaluator: Evaluator
  readonly summarizer: Summarizer
  readonly #values = new Values()
  readonly #types: ToolTypes

  constructor(program: Program, modules: ImportedModules) {
    this.graph = buildFlowGraph(program)
    this.evaluator = new Evaluator(this.graph, this.#values, modules)
    this.summarizer = new Summarizer(this.evaluator, this.#values)
    this.#types = new ToolTypes(this.graph, this.evaluator, this.summarizer, this.#values)
    recordDefinitions(this.graph)
    const propagation = new Propagation(this.graph, this.evaluator, this.#values)
    this.#seed(propagation)
    propagation.run()
    recordMemberDefinitions(this.graph, this.evaluator)
    this.#seedPublishers(propagation)
    propagation.run()
  }

  /** The name of the default-exported class; undefined when there is none. */
  get className(): string | undefined {
    const info = this.evaluator.defaultClass()
    if (!info) return undefined
    if (info.node.id) return info.node.id.name
    const exported = this.graph.defaultExport?.node
    return exported?.type === 'Identifier' ? exported.name : 'default'
  }

  summariesOf(node: Node, scope: Scope): Summary[] {
    return this.summarizer.summarize(this.evaluator.evaluate(node, scope))
  }

  summariesOfType(name: string): Summary[] {
    return this.summarizer.summarize(this.#types.named(name, this.graph.root))
  }

  #seed(propagation: Propagation): void {
    for (const { target, type, scope } of this.graph.annotated) {
      propagation.assign(target, this.#types.read(type, scope), scope)
    }
    const plugin = this.evaluator.defaultClass()
    const construct = plugin && this.evaluator.constructorOf(plugin)
    for (const run of construct ? [construct] : this.#setups()) {
      if (run.params[0]) propagation.assign(run.params[0], [this.#values.tools()], run.scope)
    }
  }

  /** The functions that `plugin` is called with. */
  #setups(): FunctionInfo[] {
    return this.graph.calls.flatMap(({ node, scope }) => {
      const called = node.callee.type === 'Identifier' ? lookup(scope, node.callee.name)?.imported : undefined
      if (called?.name !== 'plugin' || !isHeddle(called.module) || !node.arguments[0]) return []
      const setup = this.graph.functions.get(this.evaluator.resolve({ node: node.arguments[0], scope }).node)
      return setup ?? []
    })
  }

  /** What a function has been given is taken for a bus, or a transaction, when it publishes a name that the source shows, and nothing says what it is. */
  #seedPublishers(propagation: Propagation): void {
    for (const { node, scope } of this.graph.calls) {
      const callee = unwrap(node.callee)
      const event = node.arguments[0] && this.evaluator.resolve({ node: node.arguments[0], scope }).node
      if (callee.type !== 'MemberExpression' || event?.type !== 'Literal' || typeof event.value !== 'string') continue
      if (staticKey(callee.property, callee.computed) !== 'publish') continue
      const given = this.evaluator.resolve({ node: callee.object, scope })
      if (this.#isUnknownParameter(given)) propagation.assign(given.node, [this.#values.tool('publisher')], given.scope)
    }
  }

  #isUnknownParameter({ node, scope }: Expression): boolean {
    if (node.type !== 'Identifier') return false
    const location = lookup(scope, node.name)
    // Only what a function is given, or takes apart, has no definition that shows.
    if (!location?.opaque || location.imported || location.definitions.length + location.values.size > 0) return false
    const annotated = this.graph.annotated.find(
      ({ target, scope: at }) =>
        target === location || ('name' in target && target.name === node.name && lookup(at, node.name) === location),
    )
    return annotated === undefined || !this.#isForeign(annotated.type)
  }

  /** True for a type that comes from somewhere else than this domain: that of a client of some broker. */
  #isForeign(type: TSType): boolean {
    if (type.type !== 'TSTypeReference' || type.typeName.type !== 'Identifier') return type.type === 'TSImportType'
    const { name } = type.typeName
    return !this.graph.types.has(name) && !lookup(this.graph.root, name)?.imported?.module.startsWith('.')
  }
}
