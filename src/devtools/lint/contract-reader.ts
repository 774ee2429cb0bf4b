import type { Node } from 'oxc-parser'
import type { Frame } from './flow-graph.ts'
import { type LiteralReader, textOf } from './literal.ts'
import type { PayloadSchema, SchemaReader } from './payload-schema.ts'
import { type Syntax, staticKey } from './syntax.ts'
import type { ToolFlow } from './tool-flow.ts'

/** Event names and their schemas, as an object of an `events.ts` holds them. */
export interface Contracts {
  events: Array<{ event: string; line: number; schema: PayloadSchema }>
  /** The line from which on names cannot be read: a spread, a computed key, or no object literal at all. */
  unreadableLine: number | undefined
}

/** Reads objects of schemas; what is spread into them from other files of the domain is taken from there. */
export class ContractReader {
  readonly #syntax: Syntax
  readonly #flow: ToolFlow
  readonly #literals: LiteralReader
  readonly #schemas: SchemaReader

  constructor(syntax: Syntax, flow: ToolFlow, literals: LiteralReader, schemas: SchemaReader) {
    this.#syntax = syntax
    this.#flow = flow
    this.#literals = literals
    this.#schemas = schemas
  }

  /** @param offset where the object is mentioned: the line of what stands in another file */
  read(expression: Node, frame: Frame, offset: number, depth = 0): Contracts {
    const contracts: Contracts = { events: [], unreadableLine: undefined }
    const line = this.#syntax.lineOf(offset)
    const imported = this.#flow.imported(expression, frame)
    if (imported && imported.keys.length === 0) return at(line, imported.from.contracts)
    const source = this.#flow.resolve({ node: expression, frame })
    const { node } = source
    if (node !== expression && node.type !== 'ObjectExpression' && depth < 8) {
      return this.read(node, source.frame, offset, depth + 1)
    }
    if (node.type !== 'ObjectExpression') return at(line, undefined)
    for (const property of node.properties) {
      const line = this.#syntax.lineOf(property.start)
      if (property.type === 'SpreadElement') {
        const spread =
          depth < 8 ? this.read(property.argument, source.frame, property.start, depth + 1) : at(line, undefined)
        contracts.events.push(...spread.events)
        contracts.unreadableLine ??= spread.unreadableLine
        continue
      }
      const event = this.#eventName(property.key, property.computed, source.frame)
      if (event === undefined) contracts.unreadableLine ??= line
      else contracts.events.push({ event, line, schema: this.#schemas.read(property.value, source.frame) })
    }
    return contracts
  }

  #eventName(key: Node, computed: boolean, frame: Frame): string | undefined {
    return staticKey(key, computed) ?? (computed ? textOf(this.#literals.read(key, frame)) : undefined)
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
