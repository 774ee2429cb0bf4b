import type { Node, Program } from 'oxc-parser'
import { recordDefinitions, recordMemberDefinitions } from './definitions.ts'
import { Evaluator, type ImportedModules } from './evaluator.ts'
import type { FlowGraph, Scope } from './graph.ts'
import { buildFlowGraph } from './graph-builder.ts'
import { Propagation } from './propagation.ts'
import { Summarizer } from './summarizer.ts'
import type { Summary } from './summary.ts'
import { ToolTypes } from './tool-types.ts'
import { Values } from './values.ts'

/**
 * Follows the injected tools through one file, under whatever names they travel: a points-to analysis that ignores the order of
 * statements. It starts from the plugin's constructor and from type annotations, and carries values on until nothing is new.
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
    const param = construct?.params[0]
    if (param) propagation.assign(param, [this.#values.tools()], construct.scope)
  }
}
