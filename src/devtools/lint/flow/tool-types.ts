import type { Node, TSSignature, TSType } from 'oxc-parser'
import { staticKey } from '../syntax.ts'
import type { Evaluator } from './evaluator.ts'
import { type FlowGraph, type Location, lookup, type Scope, type Value } from './graph.ts'
import type { Summarizer } from './summarizer.ts'
import type { Summary } from './summary.ts'
import type { Values } from './values.ts'

/**
 * The types of `#heddle` that say which tool a parameter is. Three names here are no tools: `tx` is a transaction, `queryable` the database or
 * a transaction, and `context` what a route's handler gets. No type stands for `publisher`: the bus or a transaction, known by what it does.
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

export const isHeddle = (module: string): boolean => module === '#heddle' || module === 'heddle'

/** Generic types that leave the members of their first argument as they are. */
const TRANSPARENT_TYPES = new Set(['Pick', 'Omit', 'Readonly', 'Partial', 'Required', 'NonNullable'])
/** A type may hold itself: it is followed that far. */
const MAX_DEPTH = 8

/** Says which values a type annotation allows: tools by the types of `#heddle`, and whatever holds such types. */
export class ToolTypes {
  readonly #graph: FlowGraph
  readonly #evaluator: Evaluator
  readonly #summarizer: Summarizer
  readonly #values: Values

  constructor(graph: FlowGraph, evaluator: Evaluator, summarizer: Summarizer, values: Values) {
    this.#graph = graph
    this.#evaluator = evaluator
    this.#summarizer = summarizer
    this.#values = values
  }

  read(type: TSType, scope: Scope, depth = 0): Value[] {
    if (depth > MAX_DEPTH) return []
    switch (type.type) {
      case 'TSUnionType':
      case 'TSIntersectionType':
        return type.types.flatMap((member) => this.read(member, scope, depth + 1))
      case 'TSIndexedAccessType': {
        const index = type.indexType.type === 'TSLiteralType' ? type.indexType.literal : undefined
        if (index?.type !== 'Literal' || typeof index.value !== 'string') return []
        const key = index.value
        return this.read(type.objectType, scope, depth + 1).flatMap((value) => this.#evaluator.member(value, key))
      }
      case 'TSTypeLiteral':
        return this.#ofMembers(type.members, scope, depth)
      case 'TSParenthesizedType':
        return this.read(type.typeAnnotation, scope, depth + 1)
      case 'TSImportType':
        return type.qualifier?.type === 'Identifier' ? this.#imported(type.source.value, type.qualifier.name) : []
      case 'TSTypeReference': {
        const name = type.typeName
        if (name.type === 'Identifier') return this.named(name.name, scope, type.typeArguments?.params[0], depth)
        if (name.type !== 'TSQualifiedName' || name.left.type !== 'Identifier') return []
        const imported = lookup(scope, name.left.name)?.imported
        return imported?.name === '*' ? this.#imported(imported.module, name.right.name) : []
      }
      default:
        return []
    }
  }

  named(name: string, scope: Scope, argument?: TSType, depth = 0): Value[] {
    if (depth > MAX_DEPTH) return []
    if (TRANSPARENT_TYPES.has(name) && argument) return this.read(argument, scope, depth + 1)
    const imported = lookup(scope, name)?.imported
    if (imported) return this.#imported(imported.module, imported.name)
    const declared = this.#graph.types.get(name)
    if (!declared) return this.#instancesIn(lookup(scope, name))
    if (declared.type === 'TSTypeAliasDeclaration') return this.read(declared.typeAnnotation, scope, depth + 1)
    const parents = declared.extends.flatMap(({ expression, typeArguments }) =>
      expression.type === 'Identifier' ? this.named(expression.name, scope, typeArguments?.params[0], depth + 1) : [],
    )
    return [...parents, ...this.#ofMembers(declared.body.body, scope, depth)]
  }

  #imported(module: string, name: string): Value[] {
    if (!isHeddle(module)) return this.#evaluator.importedType(module, name)
    if (name === 'Tools' || name === 'ToolsIn') return [this.#values.tools()]
    const tool = TOOL_OF_TYPE[name]
    return tool ? [this.#values.tool(tool)] : []
  }

  /** A class of this file, as a type. */
  #instancesIn(location: Location | undefined): Value[] {
    return [...(location?.values ?? [])].flatMap((value) =>
      value.kind === 'class' ? [this.#values.instance(value.info)] : [],
    )
  }

  #ofMembers(signatures: readonly TSSignature[], scope: Scope, depth: number): Value[] {
    const members: Record<string, Summary[]> = {}
    for (const signature of signatures) {
      if (signature.type !== 'TSPropertySignature' || !signature.typeAnnotation) continue
      const key = staticKey(signature.key as Node, signature.computed)
      if (key === undefined) continue
      const values = this.read(signature.typeAnnotation.typeAnnotation, scope, depth + 1)
      const summaries = this.#summarizer.summarize(values)
      if (summaries.length > 0) members[key] = summaries
    }
    return Object.keys(members).length > 0 ? [this.#values.ofSummary({ members })] : []
  }
}
