import type { Node, Program } from 'oxc-parser'
import { ContractReader } from './contract-reader.ts'
import type { ImportedModules } from './flow/evaluator.ts'
import type { ToolFlow } from './flow/tool-flow.ts'
import type { LiteralReader } from './literal-reader.ts'
import type { ModuleExport, ModuleExports } from './module-exports.ts'
import type { SchemaReader } from './schema-reader.ts'
import type { Syntax } from './syntax.ts'

/** Reads the exports of one file, re-exports among them. */
export class ExportReader {
  readonly #exports: ModuleExports = Object.create(null)
  readonly #flow: ToolFlow
  readonly #literals: LiteralReader
  readonly #schemas: SchemaReader
  readonly #contracts: ContractReader
  readonly #modules: ImportedModules

  constructor(
    syntax: Syntax,
    flow: ToolFlow,
    literals: LiteralReader,
    schemas: SchemaReader,
    modules: ImportedModules,
  ) {
    this.#flow = flow
    this.#literals = literals
    this.#schemas = schemas
    this.#contracts = new ContractReader(syntax, flow.evaluator, literals, schemas)
    this.#modules = modules
  }

  read(program: Program): ModuleExports {
    for (const statement of program.body) {
      if (statement.type === 'ExportDefaultDeclaration') this.#add('default', statement.declaration, statement.start)
      else if (statement.type === 'ExportAllDeclaration') {
        const all = this.#modules(statement.source.value) ?? {}
        if (statement.exported) this.#exports[nameOf(statement.exported)] = { module: all }
        else for (const [name, each] of Object.entries(all)) if (name !== 'default') this.#exports[name] ??= each
      } else if (statement.type === 'ExportNamedDeclaration') {
        const from = statement.source ? (this.#modules(statement.source.value) ?? {}) : undefined
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
    const scope = this.#flow.graph.root
    const found: ModuleExport = {}
    const imported = this.#flow.evaluator.imported(node, scope)
    if (imported && imported.keys.length === 0) {
      this.#exports[name] = imported.from
      return
    }
    const typeName = node.type === 'Identifier' ? node.name : undefined
    const type = typeName === undefined ? [] : this.#flow.summariesOfType(typeName)
    if (type.length > 0) found.type = type
    const summaries = this.#flow.summariesOf(node, scope)
    if (summaries.length > 0) found.summaries = summaries
    const literal = this.#literals.readShared(node, scope)
    if (literal) found.literal = literal
    const schema = this.#schemas.read(node, scope)
    if (schema.type !== 'unknown') found.schema = schema
    const contracts = this.#contracts.read(node, scope, offset)
    if (contracts.events.length > 0 || name === 'default') found.contracts = contracts
    this.#exports[name] = found
  }
}

function nameOf(name: { type: string; name?: string; value?: string }): string {
  return name.name ?? name.value ?? ''
}
