import type { Node } from 'oxc-parser'
import { staticKey, unwrap } from '../syntax.ts'
import type { Evaluator } from './evaluator.ts'
import {
  type Call,
  type FlowGraph,
  type FunctionInfo,
  isLocation,
  type Location,
  lookup,
  type Scope,
  type Value,
} from './graph.ts'
import type { Values } from './values.ts'

/** Each round carries values one step further; no file that people write needs more. */
const MAX_ROUNDS = 32

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

/** Carries values along the assignments and calls of a graph, from location to location. */
export class Propagation {
  readonly #graph: FlowGraph
  readonly #evaluator: Evaluator
  readonly #values: Values
  #hasChanged = false

  constructor(graph: FlowGraph, evaluator: Evaluator, values: Values) {
    this.#graph = graph
    this.#evaluator = evaluator
    this.#values = values
  }

  /** Runs until no location takes a new value. */
  run(): void {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      this.#hasChanged = false
      for (const { target, source, scope } of this.#graph.assignments) {
        if (source) this.assign(target, this.#evaluator.evaluate(source.node, source.scope), scope)
      }
      for (const call of this.#graph.calls) this.#passArguments(call)
      if (!this.#hasChanged) return
    }
  }

  /** @param target a location, a pattern, or an expression that can be assigned to */
  assign(target: Node | Location, values: readonly Value[], scope: Scope): void {
    if (values.length === 0) return
    if (isLocation(target)) this.#add(target, values)
    else this.#assignPattern(unwrap(target), values, scope)
  }

  #add(location: Location, values: readonly Value[]): void {
    for (const value of values) {
      if (location.values.has(value)) continue
      location.values.add(value)
      this.#hasChanged = true
    }
  }

  #assignPattern(pattern: Node, values: readonly Value[], scope: Scope): void {
    switch (pattern.type) {
      case 'Identifier': {
        const location = lookup(scope, pattern.name)
        if (location) this.#add(location, values)
        return
      }
      case 'AssignmentPattern':
        this.assign(pattern.left, values, scope)
        return
      case 'RestElement':
        this.assign(pattern.argument, values, scope)
        return
      case 'ObjectPattern':
        for (const property of pattern.properties) {
          if (property.type === 'Property') this.#assignProperty(property, values, scope)
          else this.assign(property, values, scope)
        }
        return
      case 'MemberExpression': {
        const key = staticKey(pattern.property, pattern.computed)
        if (!key) return
        for (const location of this.#evaluator.writableLocations(pattern.object, key, scope)) {
          this.#add(location, values)
        }
      }
    }
  }

  /** One property of a pattern such as `{ key: value }`. */
  #assignProperty(
    { key: keyNode, computed, value }: { key: Node; computed: boolean; value: Node },
    values: readonly Value[],
    scope: Scope,
  ): void {
    const key = staticKey(keyNode, computed)
    if (!key) return
    const members = values.flatMap((each) => this.#evaluator.member(each, key))
    this.assign(value, members, scope)
  }

  #passArguments({ node, scope }: Call): void {
    const { callee, arguments: args } = node
    if (callee.type === 'Super') {
      const parent = scope.thisClass && this.#evaluator.superclassOf(scope.thisClass)
      if (parent) this.#bindParameters(this.#evaluator.constructorOf(parent), args, scope)
      return
    }
    for (const value of this.#evaluator.evaluate(callee, scope)) {
      if (value.kind === 'function') this.#bindParameters(value.info, args, scope)
      else if (value.kind === 'class') this.#bindParameters(this.#evaluator.constructorOf(value.info), args, scope)
      else if (value.kind === 'method') this.#bindCallback(value, args, scope)
    }
  }

  #bindParameters(info: FunctionInfo | undefined, args: readonly Node[], scope: Scope): void {
    info?.params.forEach((param, index) => {
      const argument = args[index]
      if (argument) this.assign(param, this.#evaluator.evaluate(argument, scope), info.scope)
    })
  }

  /** A parameter of the callback is a transaction, or the context of a request. */
  #bindCallback({ tool, method }: { tool: string; method: string }, args: readonly Node[], scope: Scope): void {
    const bound = CALLBACKS[`${tool}.${method}`]
    const callback = bound && args.at(bound.argument)
    for (const work of callback ? this.#evaluator.evaluate(callback, scope) : []) {
      const param = work.kind === 'function' ? work.info.params[bound!.param] : undefined
      if (work.kind === 'function' && param) this.assign(param, [this.#values.tool(bound!.tool)], work.info.scope)
    }
  }
}
