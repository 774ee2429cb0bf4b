import type { Program } from 'oxc-parser'
import { computedImports } from './computed-imports.ts'
import { ExportReader } from './export-reader.ts'
import { FunctionEffects } from './flow/function-effects.ts'
import { ToolFlow } from './flow/tool-flow.ts'
import { atLine, type Literal, lineInParts, stringsOf } from './literal.ts'
import { LiteralReader } from './literal-reader.ts'
import type { Contracts, ModuleExports } from './module-exports.ts'
import { type ModuleImport, moduleImports } from './module-imports.ts'
import { SchemaReader } from './schema-reader.ts'
import { tablesOf } from './sql-tables.ts'
import { isSqlTag } from './sql-templates.ts'
import { parseSource, type Syntax } from './syntax.ts'
import { ToolCalls } from './tool-calls.ts'
import { type TransactionFault, transactionFaults } from './transaction-faults.ts'

/** The facts of one source file that the rules need. Plain data, kept while the file is unchanged. */
export interface ModuleFacts {
  errors: Array<{ line: number; message: string }>
  /** Name of the default-exported class. */
  className: string | undefined
  imports: ModuleImport[]
  toolCalls: ToolCall[]
  /** Tables in the SQL that `db` is called with, and in each `` sql`…` ``, as far as the source shows it: once per statement, at the line of the name. */
  tables: Array<{ table: string; line: number }>
  transactionFaults: TransactionFault[]
  /** The contracts of an `events.ts`. */
  contracts: Contracts | undefined
  exports: ModuleExports
}

/** A call of `event_bus` or `http`, or of `tx.publish`. */
export interface ToolCall {
  tool: string
  method: string
  line: number
  args: Literal[]
  /** The branches that it stands in, each `<node>:<index>`. Of two branches of one node at most one runs. */
  branches: readonly string[]
}

/**
 * @param file absolute; a file named `events.ts` is also read for its contracts
 * @param load the exports of another file of the domain; undefined for anything else
 */
export async function readModule(
  file: string,
  text: string,
  isContracts: boolean,
  load: (specifier: string) => Promise<ModuleExports | undefined>,
): Promise<ModuleFacts> {
  const syntax = await parseSource(file, text)
  const known = new Map<string, ModuleExports | undefined>()
  for (const specifier of importedFiles(syntax.program)) known.set(specifier, await load(specifier))
  const modules = (specifier: string) => known.get(specifier)
  const flow = new ToolFlow(syntax.program, modules)
  const literals = new LiteralReader(syntax, flow.evaluator)
  const toolCalls = new ToolCalls(flow, literals).read().map(({ tool, method, args, offset, branches }) => ({
    tool,
    method,
    line: syntax.lineOf(offset),
    args: args.map((arg) => ('node' in arg ? literals.read(arg.node, arg.scope) : atLine(arg, syntax.lineOf(offset)))),
    branches,
  }))
  const effects = new FunctionEffects(flow.graph, flow.evaluator, literals)
  flow.summarizer.effects = effects.all()
  // Whatever becomes of a fragment, it is SQL.
  const fragments = flow.graph.templates.filter(
    ({ node, scope }) => node.type === 'TaggedTemplateExpression' && isSqlTag(node.tag, scope, flow.evaluator),
  )
  const schemas = new SchemaReader(flow.evaluator)
  const exports = new ExportReader(syntax, flow, literals, schemas, modules).read(syntax.program)
  return {
    errors: syntax.errors,
    className: flow.className,
    imports: allImports(syntax, flow, literals),
    exports,
    toolCalls: toolCalls.filter(isKept),
    tables: [
      ...toolCalls.flatMap(readTables),
      ...fragments.flatMap(({ node, scope }) => tablesIn(literals.read(node, scope))),
    ],
    transactionFaults: transactionFaults(effects, syntax.lineOf),
    contracts: isContracts ? contractsOf(syntax, exports) : undefined,
  }
}

/** In source order, each mention once. */
function allImports(syntax: Syntax, flow: ToolFlow, literals: LiteralReader): ModuleImport[] {
  const found = new Map<string, ModuleImport>()
  for (const each of [...moduleImports(syntax), ...computedImports(syntax, flow, literals)]) {
    const mention = `${each.line} ${each.specifier}`
    if (!found.has(mention)) found.set(mention, each)
  }
  return [...found.values()].sort((a, b) => a.line - b.line)
}

/** Relative specifiers of all static imports and re-exports. */
function importedFiles(program: Program): Set<string> {
  const found = new Set<string>()
  for (const statement of program.body) {
    const source = 'source' in statement ? statement.source : null
    if (source && typeof source === 'object' && source.value.startsWith('.')) found.add(source.value)
  }
  return found
}

/** A file with a syntax error may hold contracts that the parser did not see. */
function contractsOf(syntax: Syntax, exports: ModuleExports): Contracts | undefined {
  const { contracts } = exports.default ?? {}
  const [error] = syntax.errors
  if (!error) return contracts
  return { events: contracts?.events ?? [], unreadableLine: error.line }
}

const isKept = ({ tool, method }: ToolCall): boolean =>
  tool === 'event_bus' || tool === 'publisher' || tool === 'http' || (tool === 'tx' && method === 'publish')

const SQL_TOOLS = new Set(['db', 'tx', 'queryable'])
const STATEMENT_METHODS = new Set(['query', 'queryOne', 'execute'])

function readTables({ tool, method, args }: ToolCall): ModuleFacts['tables'] {
  if (!SQL_TOOLS.has(tool) || !STATEMENT_METHODS.has(method)) return []
  return tablesIn(args[0])
}

function tablesIn(literal: Literal | undefined): ModuleFacts['tables'] {
  const tables = new Map<string, number>()
  for (const sql of stringsOf(literal)) {
    for (const { table, offset } of tablesOf(sql.parts.map(({ text }) => text).join(''))) {
      if (!tables.has(table)) tables.set(table, lineInParts(sql.parts, offset))
    }
  }
  return [...tables].map(([table, line]) => ({ table, line }))
}
