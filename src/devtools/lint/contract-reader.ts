import type { Node } from 'oxc-parser'
import type { Evaluator } from './flow/evaluator.ts'
import type { Scope } from './flow/graph.ts'
import { textOf } from './literal.ts'
import type { LiteralReader } from './literal-reader.ts'
import type { Contracts } from './module-exports.ts'
import type { SchemaReader } from './schema-reader.ts'
import { type Syntax, staticKey } from './syntax.ts'

/** An object may be spread into itself: spreads are followed that far. */
const MAX_DEPTH = 8

/** Reads objects of schemas, and the objects of other files of the domain that are spread into them. */
export class ContractReader {
  readonly #syntax: Syntax
  readonly #evaluator: Evaluator
  readonly #literals: LiteralReader
  readonly #schemas: SchemaReader

  constructor(syntax: Syntax, evaluator: Evaluator, literals: LiteralReader, schemas: SchemaReader) {
    this.#syntax = syntax
    this.#evaluator = evaluator
    this.#literals = literals
    this.#schemas = schemas
  }

  /** @param offset where the object is mentioned, which is the line of contracts that stand in another file */
  read(expression: Node, scope: Scope, offset: number, depth = 0): Contracts {
    const contracts: Contracts = { events: [], unreadableLine: undefined }
    const line = this.#syntax.lineOf(offset)
    const imported = this.#evaluator.imported(expression, scope)
    if (imported && imported.keys.length === 0) return at(line, imported.from.contracts)
    const source = this.#evaluator.resolve({ node: expression, scope })
    const { node } = source
    if (node !== expression && node.type !== 'ObjectExpression' && depth < MAX_DEPTH) {
      return this.read(node, source.scope, offset, depth + 1)
    }
    if (node.type !== 'ObjectExpression') return at(line, undefined)
    for (const property of node.properties) {
      const line = this.#syntax.lineOf(property.start)
      if (property.type === 'SpreadElement') {
        const spread =
          depth < MAX_DEPTH
            ? this.read(property.argument, source.scope, property.start, depth + 1)
            : at(line, undefined)
        contracts.events.push(...spread.events)
        contracts.unreadableLine ??= spread.unreadableLine
        continue
      }
      const event = this.#eventName(property.key, property.computed, source.scope)
      if (event === undefined) contracts.unreadableLine ??= line
      else contracts.events.push({ event, line, schema: this.#schemas.read(property.value, source.scope) })
    }
    return contracts
  }

  #eventName(key: Node, computed: boolean, scope: Scope): string | undefined {
    return staticKey(key, computed) ?? (computed ? textOf(this.#literals.read(key, scope)) : undefined)
  }
}

/** Contracts of another file, as if they stood in this line. */
function at(line: number, contracts: Contracts | undefined): Contracts {
  if (!contracts) return { events: [], unreadableLine: line }
  return {
    events: contracts.events.map((each) => ({ ...each, line })),
    unreadableLine: contracts.unreadableLine === undefined ? undefined : line,
  }
}
