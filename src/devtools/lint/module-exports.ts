import type { Node, Program } from 'oxc-parser'
import { ContractReader, type Contracts } from './contract-reader.ts'
import type { Frame } from './flow-graph.ts'
import type { Literal, LiteralReader } from './literal.ts'
import type { PayloadSchema, SchemaReader } from './payload-schema.ts'
import type { Syntax } from './syntax.ts'
import type { ForeignExports, ToolFlow } from './tool-flow.ts'
import type { Shape } from './tool-value.ts'

/** What the other files of a domain need to know of an export. Plain data, kept while the file is unchanged. */
export interface ModuleExport {
  /** Of a constant: its texts, and those of its members. */
  literal?: Literal
  /** Ways to tools. */
  shapes?: Shape[]
  /** The same of a type. */
  type?: Shape[]
  schema?: PayloadSchema
  /** Of an object of schemas. */
  contracts?: Contracts
  /** Of `export * as name`. */
  module?: ModuleExports
}

export type ModuleExports = Record<string, ModuleExport>

/** Everything that one file has for others, re-exports included. */
export class ExportReader {
  readonly #exports: ModuleExports = Object.create(null)
  readonly #flow: ToolFlow
  readonly #literals: LiteralReader
  readonly #schemas: SchemaReader
  readonly #contracts: ContractReader
  readonly #foreign: ForeignExports

  constructor(syntax: Syntax, flow: ToolFlow, literals: LiteralReader, schemas: SchemaReader, foreign: ForeignExports) {
    this.#flow = flow
    this.#literals = literals
    this.#schemas = schemas
    this.#contracts = new ContractReader(syntax, flow, literals, schemas)
    this.#foreign = foreign
  }

  read(program: Program): ModuleExports {
    for (const statement of program.body) {
      if (statement.type === 'ExportDefaultDeclaration') this.#add('default', statement.declaration, statement.start)
      else if (statement.type === 'ExportAllDeclaration') {
        const all = this.#foreign(statement.source.value) ?? {}
        if (statement.exported) this.#exports[nameOf(statement.exported)] = { module: all }
        else for (const [name, each] of Object.entries(all)) if (name !== 'default') this.#exports[name] ??= each
      } else if (statement.type === 'ExportNamedDeclaration') {
        const from = statement.source ? (this.#foreign(statement.source.value) ?? {}) : undefined
        for (const { local, exported } of statement.specifiers) {
          const name = nameOf(exported)
          if (!from) this.#add(name, local, statement.start)
          else if (from[nameOf(local)]) this.#exports[name] = from[nameOf(local)]!
        }
        if (statement.declaration) this.#declaration(statement.declaration)
      }
    }
    return this.#exports
  }

  #declaration(node: Node): void {
    if (node.type === 'VariableDeclaration') {
      for (const { id } of node.declarations) if (id.type === 'Identifier') this.#add(id.name, id, id.start)
    } else if ('id' in node && node.id && (node.id as Node).type === 'Identifier') {
      const id = node.id as Extract<Node, { type: 'Identifier' }>
      this.#add(id.name, id, id.start)
    }
  }

  #add(name: string, node: Node, offset: number): void {
    const frame: Frame = this.#flow.graph.root
    const found: ModuleExport = {}
    const imported = this.#flow.imported(node, frame)
    if (imported && imported.keys.length === 0) {
      this.#exports[name] = imported.from
      return
    }
    const typeName = node.type === 'Identifier' ? node.name : undefined
    const type = typeName === undefined ? [] : this.#flow.shapesOfType(typeName)
    if (type.length > 0) found.type = type
    const shapes = this.#flow.shapesOf(node, frame)
    if (shapes.length > 0) found.shapes = shapes
    const literal = this.#literals.readShared(node, frame)
    if (literal) found.literal = literal
    const schema = this.#schemas.read(node, frame)
    if (schema.type !== 'unknown') found.schema = schema
    const contracts = this.#contracts.read(node, frame, offset)
    if (contracts.events.length > 0 || name === 'default') found.contracts = contracts
    this.#exports[name] = found
  }
}

function nameOf(name: { type: string; name?: string; value?: string }): string {
  return name.name ?? name.value ?? ''
}
