import type { ExportDefaultDeclaration, Node } from 'oxc-parser'
import type { Frame } from './flow-graph.ts'
import { type Literal, LiteralReader, lineInParts, textOf } from './literal.ts'
import { type ModuleImport, moduleImports } from './module-imports.ts'
import { type PayloadSchema, SchemaReader } from './payload-schema.ts'
import { tablesOf } from './sql-tables.ts'
import { parseSource, type Syntax, staticKey } from './syntax.ts'
import { ToolFlow } from './tool-flow.ts'

/** All that the rules want to know of one source file. Plain data, kept while the file is unchanged. */
export interface ModuleFacts {
  errors: Array<{ line: number; message: string }>
  /** Of the default-exported class. */
  className: string | undefined
  imports: ModuleImport[]
  toolCalls: ToolCall[]
  /** Tables in the SQL given to `db`, as far as the source shows it: once per statement, at the line of the name. */
  tables: Array<{ table: string; line: number }>
  contracts: Contracts | undefined
}

/** A call of `event_bus` or `http`. */
export interface ToolCall {
  tool: string
  method: string
  line: number
  args: Literal[]
}

/** The default export of `events.ts`. */
export interface Contracts {
  events: Array<{ event: string; line: number; schema: PayloadSchema }>
  /** The line from which on names cannot be read: a spread, a computed key, or no object literal at all. */
  unreadableLine: number | undefined
}

/** @param file absolute; a file named `events.ts` is also read for its contracts */
export async function readModule(file: string, text: string, isContracts: boolean): Promise<ModuleFacts> {
  const syntax = await parseSource(file, text)
  const flow = new ToolFlow(syntax.program)
  const literals = new LiteralReader(syntax, flow)
  const toolCalls = flow.toolCalls().map(({ tool, method, args, frame, offset }) => ({
    tool,
    method,
    line: syntax.lineOf(offset),
    args: readArguments(args, frame, literals),
  }))
  return {
    errors: syntax.errors,
    className: flow.className,
    imports: moduleImports(syntax),
    toolCalls: toolCalls.filter(({ tool }) => tool === 'event_bus' || tool === 'http'),
    tables: toolCalls.flatMap(readTables),
    contracts: isContracts ? readContracts(syntax, flow, literals) : undefined,
  }
}

/** Up to the first spread: what comes after it has no known place. */
function readArguments(args: readonly Node[], frame: Frame, literals: LiteralReader): Literal[] {
  const spread = args.findIndex((argument) => argument.type === 'SpreadElement')
  return args.slice(0, spread === -1 ? undefined : spread).map((argument) => literals.read(argument, frame))
}

const STATEMENT_METHODS = new Set(['query', 'queryOne', 'execute'])

function readTables({ tool, method, args }: ToolCall): ModuleFacts['tables'] {
  const sql = args[0]
  if (tool !== 'db' || !STATEMENT_METHODS.has(method) || sql?.type !== 'string') return []
  const tables = new Map<string, number>()
  for (const { table, offset } of tablesOf(sql.parts.map(({ text }) => text).join(''))) {
    if (!tables.has(table)) tables.set(table, lineInParts(sql.parts, offset))
  }
  return [...tables].map(([table, line]) => ({ table, line }))
}

function readContracts(syntax: Syntax, flow: ToolFlow, literals: LiteralReader): Contracts | undefined {
  const exported = syntax.program.body.find(
    (statement): statement is ExportDefaultDeclaration => statement.type === 'ExportDefaultDeclaration',
  )
  if (!exported) return undefined
  const contracts: Contracts = { events: [], unreadableLine: undefined }
  const { node, frame } = flow.resolve({ node: exported.declaration, frame: flow.graph.root })
  if (node.type !== 'ObjectExpression') {
    contracts.unreadableLine = syntax.lineOf(exported.start)
    return contracts
  }
  const schemas = new SchemaReader(flow)
  for (const property of node.properties) {
    const event = property.type === 'Property' ? eventName(property.key, property.computed, frame, literals) : undefined
    const line = syntax.lineOf(property.start)
    if (property.type !== 'Property' || event === undefined) contracts.unreadableLine ??= line
    else contracts.events.push({ event, line, schema: schemas.read(property.value, frame) })
  }
  return contracts
}

function eventName(key: Node, computed: boolean, frame: Frame, literals: LiteralReader): string | undefined {
  return staticKey(key, computed) ?? (computed ? textOf(literals.read(key, frame)) : undefined)
}
