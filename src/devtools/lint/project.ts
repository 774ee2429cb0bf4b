// The domains as they are on disk, parsed, with what the rules need to know of each file.
import type { Dirent } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { JsonSchema } from '../../contracts/registry.ts'
import { messageOf } from '../../core/errors/description.ts'
import { type EventContract, loadEventContracts } from '../../core/schemas/event-contracts.ts'
import { jsonSchemaOf } from '../../core/schemas/json-schema.ts'
import { TextFault, textOf as textIn } from '../../preload/text-file.cjs'
import { classNameOf, isPluginFile } from '../../runtime/kernel/discover.ts'
import { ANY_DIALECT, tokenizeSql } from '../../stores/sql/tokens.ts'
import { Transactions } from './dual-write.ts'
import { compareText, errorAt, type Finding } from './finding.ts'
import { allImports, type ModuleImport } from './imports.ts'
import { reached, readScopes, relativeTarget, type Source } from './scopes.ts'
import { type TableMention, tablesOf } from './sql-tables.ts'
import { keyOf, lineIndex, parseSource, walk } from './syntax.ts'
import { joined, type Literal, lineInParts, stringsOf, Texts, textOf } from './texts.ts'
import { isStatement, type ToolCall, toolCallsOf } from './tool-calls.ts'
import { Values } from './values.ts'

export interface Project {
  domains: Domain[]
  modules: Module[]
  plugins: Plugin[]
  /** In the order in which they run, as far as the domains alone decide it. */
  migrations: Migration[]
  contracts: Contracts
  /** Folders and files that cannot be read or parsed. */
  faults: Finding[]
}

export interface Contract extends Pick<EventContract, 'file' | 'domain'> {
  /** What the payload may be, as far as the schema describes itself. */
  schema: JsonSchema
}

interface Contracts {
  /** By event: the first one when there are several. */
  byEvent: Map<string, Contract>
  faults: Array<{ file: string; message: string }>
}

export interface Domain {
  name: string
  /** Absolute; more than one when several of the domains' folders hold a domain of this name. */
  folders: string[]
}

/** A source file of a domain. */
export interface Module {
  /** Absolute. */
  file: string
  domain: string
  /** Name of the default-exported class. */
  className: string | undefined
  imports: ModuleImport[]
  /** Calls of `event_bus` or `http`, or of `tx.publish`. */
  toolCalls: ToolCall[]
  /** Tables in the SQL that `db` is called with, and in each `` sql`…` ``, as far as the source shows it: once per statement, at the line of the name. */
  tables: Array<{ table: string; line: number }>
  /** Rows that are written apart from the events about them, and what is done within a transaction besides. */
  transactionFaults: Finding[]
  /** Of an `events.ts`: the line of each key. */
  keyLines: Map<string, number>
}

export interface Plugin extends Module {
  /** `<domain>.<ClassName>` */
  name: string
}

export interface Migration {
  /** Absolute. */
  file: string
  domain: string
  /** The file's name without `.sql`. */
  stem: string
  /** `<domain>/<stem>` */
  id: string
  /** The targets of `-- depends: <domain>/<NNN_name>` in the header. */
  depends: Array<{ target: string; line: number }>
  /** The same lines below the header, where the runner takes them for comments. */
  ignoredDepends: Array<{ target: string; line: number }>
  tables: Array<{ table: string; role: TableMention['role']; line: number }>
}

/** The domain that `app.ts`, which belongs to none, counts as. */
const APPLICATION = 'app'

/** The name under which a `domain.ts` or an `app.ts` acts: `shop.domain`, `app`; undefined for another file. */
export function setupName({ file, domain }: Module, { domains }: Project): string | undefined {
  const folder = path.dirname(file)
  const isIn = (folders: readonly string[]): boolean => folders.includes(folder)
  if (/^domain\.(?:ts|js|mjs)$/.test(path.basename(file)) && domains.some(({ folders }) => isIn(folders)))
    return `${domain}.domain`
  const isOfAll = domains.some(({ folders }) => isIn(folders.map((each) => path.dirname(each))))
  return isOfAll && APP.test(path.basename(file)) ? APPLICATION : undefined
}

/** File → the plugins that run its code (`domain.ts` and `app.ts` count as such): the plugin in the file, and the plugins that import it, directly or through other files. */
export function pluginsByFile(project: Project): Map<string, Set<string>> {
  const byFile = new Map(project.modules.map((module) => [module.file, module]))
  const found = new Map<string, Set<string>>()
  const setups = project.modules.flatMap((module) => {
    const name = setupName(module, project)
    return name === undefined ? [] : [{ ...module, name }]
  })
  for (const plugin of [...project.plugins, ...setups]) {
    const imported = (file: string): string[] =>
      byFile.get(file)!.imports.flatMap(({ specifier }) => {
        const target = relativeTarget(file, specifier)
        return target && byFile.has(target) ? [target] : []
      })
    for (const file of reached([plugin.file], imported)) {
      found.set(file, (found.get(file) ?? new Set()).add(plugin.name))
    }
  }
  return found
}

const APP = /^app\.(?:ts|js|mjs)$/

const DEPENDS = /^\s*depends\s*:\s*(.*?)\s*$/i
/** Names of files that hold TypeScript or JavaScript, and not just types. */
const SOURCE = /(?<!\.d)\.[cm]?ts$|\.(?:[cm]?js|[jt]sx)$/

/** Files that are left out, absolute, each with the reason. */
export type Unreadable = Readonly<Record<string, string>>

export async function readProject(domainsDirs: readonly string[], unreadable: Unreadable = {}): Promise<Project> {
  const folders = [...new Set(domainsDirs.map((dir) => path.resolve(dir)))]
  // Before anything is parsed: what ends the process here is no fault of the parser.
  const contracts = await loadContracts(folders)
  const project: Project = { domains: [], modules: [], plugins: [], migrations: [], contracts, faults: [] }
  for (const folder of folders) {
    for (const name of await namesIn(folder, 'directory', project.faults)) {
      const domain = path.join(folder, name)
      const known = project.domains.find((each) => each.name === name)
      if (known) known.folders.push(domain)
      else project.domains.push({ name, folders: [domain] })
      const sources = (await filesBelow(domain, project.faults)).filter((file) => SOURCE.test(file))
      await readModules(sources, name, project, unreadable)
      await readMigrations(domain, name, project)
    }
    const apps = (await namesIn(folder, 'file')).filter((name) => APP.test(name))
    for (const name of apps) await readModules([path.join(folder, name)], APPLICATION, project, unreadable)
  }
  const numberOf = ({ stem }: Migration): number => Number.parseInt(stem, 10) || 0
  project.migrations.sort(
    (a, b) => compareText(a.domain, b.domain) || numberOf(a) - numberOf(b) || compareText(a.stem, b.stem),
  )
  for (const module of project.modules) {
    const folder = path.dirname(module.file)
    const isPlugin = project.domains.some(({ folders: all }) => all.includes(path.dirname(folder)))
    if (!isPlugin || path.basename(folder) !== 'plugins' || !isPluginFile(path.basename(module.file))) continue
    project.plugins.push({ ...module, name: `${module.domain}.${module.className ?? classNameOf(module.file)}` })
  }
  return project
}

/** Runs the `events.ts` of all domains. */
async function loadContracts(domainsDirs: readonly string[]): Promise<Contracts> {
  const { contracts, faults } = await loadEventContracts(domainsDirs)
  const byEvent = new Map<string, Contract>()
  for (const [event, { file, domain, schema }] of contracts)
    byEvent.set(event, { file, domain, schema: jsonSchemaOf(schema, 'literal') })
  // A folder that cannot be read has a finding of its own.
  return { byEvent, faults: faults.filter(({ file }) => path.basename(file) === 'events.ts') }
}

/** Reads the source files of one domain, which know of each other. */
async function readModules(files: string[], domain: string, project: Project, unreadable: Unreadable): Promise<void> {
  const sources = new Map<string, Source>()
  for (const file of files) {
    const source = await attempt(file, project.faults, async () => {
      if (Object.hasOwn(unreadable, file)) throw new Error(unreadable[file])
      return readScopes(file, await parseSource(file, await textOfFile(file)))
    })
    if (source) sources.set(file, source)
    for (const { line, message } of source?.syntax.errors ?? []) {
      project.faults.push(errorAt('parse', file, line, message))
    }
  }
  const values = new Values(sources)
  const texts = new Texts(values)
  const toolCalls = toolCallsOf(sources.values(), values, texts)
  const transactions = new Transactions(sources.values(), values, texts)
  for (const [file, source] of sources) {
    const calls = toolCalls.get(source) ?? []
    const statements = calls.filter(({ tool, method }) => isStatement(tool, method))
    // Whatever becomes of a fragment, it is SQL.
    const fragments = source.templates.filter(({ node, scope }) => 'tag' in node && texts.isSqlTag(node.tag, scope))
    const module = await attempt(file, project.faults, async () => ({
      file,
      domain,
      className: values.className(source),
      imports: allImports(source, values, texts),
      toolCalls: calls.filter(({ tool, method }) => isOfRules(tool, method)),
      tables: [...statements.map(({ args }) => args[0]), ...fragments.map((each) => texts.read(each))].flatMap(
        tablesIn,
      ),
      transactionFaults: transactions.faultsOf(source),
      keyLines: path.basename(file) === 'events.ts' ? keyLinesOf(source, texts) : new Map(),
    }))
    if (module) project.modules.push(module)
  }
}

const isOfRules = (tool: string, method: string): boolean =>
  tool === 'event_bus' || tool === 'http' || (tool === 'tx' && method === 'publish')

function tablesIn(literal: Literal | undefined): Module['tables'] {
  const tables = new Map<string, number>()
  for (const { parts } of stringsOf(literal)) {
    for (const { table, offset } of tablesOf(joined(parts))) {
      if (!tables.has(table)) tables.set(table, lineInParts(parts, offset))
    }
  }
  return [...tables].map(([table, line]) => ({ table, line }))
}

function keyLinesOf({ syntax, root: scope }: Source, texts: Texts): Module['keyLines'] {
  const lines = new Map<string, number>()
  walk(syntax.program, (node) => {
    if (node.type !== 'Property') return
    const key = keyOf(node) ?? textOf(texts.read({ node: node.key, scope }))
    if (key !== undefined && !lines.has(key)) lines.set(key, syntax.lineOf(node.start))
  })
  return lines
}

async function readMigrations(folder: string, domain: string, project: Project): Promise<void> {
  for (const name of await namesIn(path.join(folder, 'migrations'), 'file')) {
    // What takes a migration back has its order from it.
    if (!name.endsWith('.sql') || name.endsWith('.down.sql')) continue
    const file = path.join(folder, 'migrations', name)
    const facts = await attempt(file, project.faults, async () => readMigration(await textOfFile(file)))
    const stem = name.slice(0, -'.sql'.length)
    if (facts) project.migrations.push({ ...facts, file, domain, stem, id: `${domain}/${stem}` })
  }
}

function readMigration(sql: string): Pick<Migration, 'depends' | 'ignoredDepends' | 'tables'> {
  const lineOf = lineIndex(sql)
  const depends: Migration['depends'] = []
  const ignoredDepends: Migration['ignoredDepends'] = []
  // The header ends at the first line that is neither blank nor a `--` comment.
  let inHeader = true
  for (const token of tokenizeSql(sql, ANY_DIALECT)) {
    const isLineComment = token.kind === 'comment' && sql.startsWith('--', token.offset)
    inHeader &&= isLineComment
    const target = isLineComment ? DEPENDS.exec(token.text)?.[1] : undefined
    if (target === undefined) continue
    const list = inHeader ? depends : ignoredDepends
    list.push({ target, line: lineOf(token.offset) })
  }
  const tables = tablesOf(sql).map(({ table, role, offset }) => ({ table, role, line: lineOf(offset) }))
  return { depends, ignoredDepends, tables }
}

async function textOfFile(file: string): Promise<string> {
  return textIn(await readFile(file), file)
}

/** All files below the folder, in the order of their paths. @param faults see `namesIn` */
export async function filesBelow(folder: string, faults?: Finding[]): Promise<string[]> {
  const found = (await namesIn(folder, 'file', faults)).map((name) => path.join(folder, name))
  for (const name of await namesIn(folder, 'directory', faults)) {
    found.push(...(await filesBelow(path.join(folder, name), faults)))
  }
  return found
}

/** A link may lead to one: the runtime loads that, too. */
const mayBeFile = (entry: Dirent): boolean => entry.isFile() || entry.isSymbolicLink()

/** Names in a folder, sorted. @param faults gets a finding when the folder cannot be read; without it the folder need not exist */
async function namesIn(folder: string, kind: 'file' | 'directory', faults?: Finding[]): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    const names = entries.filter((entry) => (kind === 'file' ? mayBeFile(entry) : entry.isDirectory()))
    return names
      .map((entry) => entry.name)
      .filter((name) => !name.startsWith('.') && name !== 'node_modules')
      .sort(compareText)
  } catch (error) {
    faults?.push(errorAt('parse', folder, 1, `the folder cannot be read: ${messageOf(error)}`))
    return []
  }
}

async function attempt<T>(file: string, faults: Finding[], read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof TextFault) {
      faults.push(errorAt('parse', file, error.line, error.why))
      return undefined
    }
    const reason = error instanceof RangeError ? 'it is nested too deeply' : messageOf(error)
    faults.push(errorAt('parse', file, 1, `the file cannot be read: ${reason}`))
    return undefined
  }
}
