// Fixes by the message of an error, and what other frameworks call tools and methods.

import { basename, join } from 'node:path'
import { nearestName } from '../../core/config/nearest-name.ts'
import { DbError, HeddleError } from '../../core/errors/catalogue.ts'
import { codeOf, isInstance, messageOf, readable } from '../../core/errors/description.ts'
import { linesOf, type SourcePlace } from '../../core/errors/places.ts'
import { partsOf } from '../../core/modules/domains.ts'
import { readText } from '../../preload/text-file.cjs'
import { DOWN_SUFFIX, DRAFT, filesOf } from '../../stores/migrations/files.ts'
import { makerOf } from '../../stores/migrations/script-fault.ts'

/** Lines above the fault in which the value is looked for. */
const LINES = 30
/** Calls of tools that return promises. */
const CALLS =
  'query|queryOne|execute|transaction|get|set|cached|increment|request|publish|verifyToken|verifyPassword|hashPassword|fetch|json|text'

/** The fix of a value that is used as if its promise had been awaited; undefined when the source above shows nothing of the kind. */
function unawaitedFix(name: string, place: SourcePlace | undefined): string | undefined {
  if (place === undefined) return undefined
  const lines = linesOf(place.file).slice(Math.max(0, place.line - LINES), place.line)
  const made = new RegExp(
    `\\b${name.replace('$', '\\$')}\\s*(?::[^=]+)?=\\s*(?!await\\b)([\\w$.#]*\\b(?:${CALLS}))\\s*[(<]`,
  )
  const found = lines
    .reverse()
    .map((line) => made.exec(line))
    .find((match) => match !== null)
  return found ? `${name} is a promise: write ${name} = await ${found[1]}(…).` : undefined
}

const NEW_TABLE = 'npm run new -- migration <domain>/<name>'

type DatabaseFix = (found: RegExpExecArray, domainsDirs: readonly string[]) => string

/** By the messages of SQLite and PostgreSQL. */
const DATABASE_FIXES: readonly [RegExp, DatabaseFix][] = [
  [
    /no such table: (?:main\.)?"?([\w.]+)|relation "([^"]+)" does not exist/,
    (found, domainsDirs) => missingTable(found[1] ?? found[2]!, domainsDirs),
  ],
  [
    /no such column: "?([\w.]+)"?|column "?([\w.]+)"? (?:of relation \S+ )?does not exist|has no column named (\w+)/,
    (found) =>
      `correct the name ${found.slice(1).find(Boolean)}, or add the column by a migration (${NEW_TABLE}); a text stands in 'single quotes'`,
  ],
  [
    /more than one statement|cannot insert multiple commands/,
    () => `one statement a call: several go into db.transaction, tables into a migration (${NEW_TABLE})`,
  ],
  [/has 0 parameter\(s\), but/, () => 'write $1, $2, … into the statement, without quotes'],
]

/** The fix of a database error; undefined when there is none that would help. */
function databaseFix(error: HeddleError, domainsDirs: readonly string[]): string | undefined {
  if (!(error instanceof DbError)) return undefined
  for (const [fault, fix] of DATABASE_FIXES) {
    const found = fault.exec(error.message)
    if (found !== null) return fix(found, domainsDirs)
  }
  if (error.kind !== 'unique_violation') return undefined
  return "catch it and answer: if (error instanceof DbError && error.kind === 'unique_violation') throw new HttpError(409, …)"
}

/** Tables that were missing before: a request that fails again and again reads the migrations once. */
const missing = new Map<string, { fix: string; atMs: number }>()
const MISSING_MAX = 100
/** After this time the migrations are read again, milliseconds. */
const MISSING_KEEP_MS = 5000

function missingTable(table: string, domainsDirs: readonly string[]): string {
  // Whoever removes all tables removes the runtime's own, which it makes at its start.
  if (/^(?:\w+\.)?(?:heddle_|_migrations$)/.test(table))
    return `the runtime makes the table ${table} when it starts, and somebody has removed it since: start the process again`
  const known = missing.get(table)
  if (known !== undefined && performance.now() - known.atMs < MISSING_KEEP_MS) return known.fix
  const maker = makerOf(table, domainsDirs.flatMap(migrationsIn))
  const fix =
    maker === undefined
      ? `no applied migration makes the table ${table}: write one (${NEW_TABLE}), or apply what is pending (DB_AUTO_MIGRATE=true npm start -- --boot-tool db)`
      : `${maker.id} makes the table ${table} and is not applied to this database: ${DRAFT.test(maker.sql) ? 'remove its line `-- heddle: draft`, or ' : ''}apply it (npm run migrate), and read there why it fails, if it does`
  if (missing.size >= MISSING_MAX) missing.clear()
  missing.set(table, { fix, atMs: performance.now() })
  return fix
}

/** Those of one folder of domains, without a check: the runner of the migrations says what is wrong with them. */
function migrationsIn(root: string): { id: string; sql: string }[] {
  const found = readable(() =>
    partsOf(root, 'migrations').flatMap(({ domain, path }) =>
      filesOf(path)
        .filter((name) => !name.endsWith(DOWN_SUFFIX))
        .sort()
        .map((name) => ({ id: `${domain}/${basename(name, '.sql')}`, sql: readText(join(path, name)) })),
    ),
  )
  return found ?? []
}

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** How to fix a mistake that beginners make, in one sentence; undefined for all other errors. */
export function fixOf(thrown: unknown, context: FixContext): string | undefined {
  if (!isInstance(thrown, Error)) return thrownValueFix(thrown)
  if (thrown instanceof HeddleError) return databaseFix(thrown, context.domainsDirs) ?? toolFix(thrown, context)
  const message = messageOf(thrown)
  for (const [fault, fix] of FIXES) {
    const found = fault.exec(message)
    const text = found === null ? undefined : fix(found, context)
    if (text !== undefined) return text
  }
  return CODES[codeOf(thrown) ?? '']
}

/** A name that was used before the line had run that makes it. */
export const NOT_YET = /^Cannot access '([\w$]+)' before initialization|^([\w$]+) is not initialized/

type Fix = (found: RegExpExecArray, context: FixContext) => string | undefined

/** By the messages of V8. */
const FIXES: readonly [RegExp, Fix][] = [
  [/^Must call super constructor/, () => 'call super() first in the constructor, before `this`.'],
  [
    NOT_YET,
    (found) =>
      `make ${found[1] ?? found[2]} above its use; where files import each other (npm run lint:architecture shows them), move it into a file of its own that both import, or use it only in functions that run later.`,
  ],
  [
    /^Class extends value/,
    () => "what stands behind `extends` is no class here: import { Plugin } from 'heddle', without `type`.",
  ],
  [/^([\w$]+) is not defined$/, ([, name], { place, tools }) => undefinedName(name!, place, tools())],
  [
    /(?:^|\.|#)([\w$]+)\.([\w$]+) is not a function$/,
    (found, context) => unawaitedFix(found[1]!, context.place) ?? methodFix(found, context),
  ],
  [/^([\w$]+) is not iterable/, ([, name], { place }) => unawaitedFix(name!, place)],
  [/^Cannot read properties of undefined/, (_, { place }) => requestFix(place)],
  [
    /^Cannot (?:read|write) private member|^Receiver must be/,
    () => '`this` is another object here: write the function as an arrow function, `() => …`.',
  ],
  [
    /^Converting circular structure to JSON/,
    () => 'JSON cannot hold what contains itself: return the fields that the client needs.',
  ],
  [/^Assignment to constant variable/, () => 'declare it with `let`.'],
  [
    /^Unknown file extension "\.[cm]?tsx?"/,
    () =>
      'import it at the top of the file: import() goes to Node itself where tsconfig.json has paths, extends, decorators or jsx.',
  ],
  [
    /emitDecoratorMetadata|^TypeInfo not known for/,
    () =>
      "files are compiled one by one, without the types that emitDecoratorMetadata writes down: name the type in the decorator (@Column('text'), @inject(Mailer)), or compile the domains with tsc or swc and set DOMAINS_DIR to the JavaScript.",
  ],
]

export const FILE_FIX =
  "of a file that is no code read the bytes, readFileSync(new URL('./file', import.meta.url)): new WebAssembly.Module(…) takes those of a .wasm."

/** By the codes of Node. */
const CODES: Readonly<Record<string, string>> = {
  ERR_IMPORT_ATTRIBUTE_MISSING: "write import data from './data.json' with { type: 'json' }.",
  ERR_UNKNOWN_FILE_EXTENSION: FILE_FIX,
  ERR_REQUIRE_ESM: "write import … from '…' instead of require.",
}

/** Names that only files of CommonJS have. */
const COMMONJS = ['require', 'module', 'exports', '__dirname', '__filename']
/** What plugins import as values. */
const EXPORTS = [
  'plugin',
  'Plugin',
  'HttpError',
  'HeddleError',
  'DbError',
  'Unrecoverable',
  'Sessions',
  'guard',
  'sql',
  'keysetPage',
]

function undefinedName(name: string, place: SourcePlace | undefined, tools: readonly string[]): string | undefined {
  if (name.startsWith('__')) return "write new URL('./file', import.meta.url) for a path beside this file."
  if (COMMONJS.includes(name)) return "write import … from '…' and `export default …`: plugin files are ES modules."
  const text = place === undefined ? '' : linesOf(place.file).join('\n')
  const isType = new RegExp(`import\\s+type\\s*\\{[^}]*\\b${name}\\b|\\btype\\s+${name}\\b[^}=]*\\}\\s*from`).test(text)
  if (isType)
    return `${name} is imported as a type, which is not there at run time: import { ${name} } without \`type\`.`
  if (name === 'z') return "import { z } from 'zod'."
  if (EXPORTS.includes(name)) return `import { ${name} } from 'heddle'.`
  if (tools.includes(name))
    return `take it from the tools: plugin(({ ${name} }) => …), or constructor({ ${name} }: Tools) { super(); this.#${name} = ${name} }.`
  return undefined
}

/** A handler that expects the `req` of Express. */
function requestFix(place: SourcePlace | undefined): string | undefined {
  const line = place === undefined ? '' : (linesOf(place.file)[place.line - 1] ?? '')
  if (!/\b(?:req|request|ctx|context)\.(?:body|query|params)\b/.test(line)) return undefined
  return 'the first argument of a handler is its data, made of query, body and path parameters: ({ name }, context) => ….'
}

/** What is no Error has no stack. */
function thrownValueFix(thrown: unknown): string {
  const {
    status,
    statusCode = status,
    message,
  } = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Record<string, unknown>
  if (typeof statusCode === 'number')
    return `throw new HttpError(${statusCode}, ${toJson(message ?? 'why')}), which has a line and is the answer.`
  return 'throw an Error, which has a line: throw new Error(…).'
}

/** What a thread knows that helps to fix a mistake. */
export interface FixFacts {
  /** DOMAINS_DIR. */
  domainsDirs: readonly string[]
  /** Names of the installed tools. */
  tools(): readonly string[]
  /** The methods that a plugin gets of a tool. */
  methodsOf(tool: string): readonly string[]
  /** The file of a plugin. */
  fileOf(plugin: string): string | undefined
}

export interface FixContext extends FixFacts {
  /** The line that has thrown the error, or waits for what has; undefined when no stack has one. */
  place: SourcePlace | undefined
}

/** What each is called here, by what it is called elsewhere. */
const byOtherName = (names: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(names).flatMap(([name, others]) => others.split(' ').map((other) => [other, name])))

/** Names that other frameworks have for a tool. */
const TOOLS = byOtherName({
  db: 'database pool sql prisma knex',
  event_bus: 'bus events emitter queue pubsub',
  http: 'app router server web express',
  state: 'cache redis kv store',
  logger: 'log console',
  scheduler: 'cron jobs timer',
  config: 'env settings environment',
  auth: 'jwt tokens',
  registry: 'metrics',
  telemetry: 'tracing',
})

/** Names that other libraries have for a method of a tool. */
const METHODS = byOtherName({
  execute: 'run exec insert',
  query: 'all select',
  queryOne: 'one first',
  publish: 'emit send dispatch',
  subscribe: 'on listen addListener',
  addEndpoint: 'route add',
  before: 'use',
  addWebSocket: 'ws',
  mountStatic: 'static',
  addStream: 'sse',
  info: 'log',
  warn: 'warning',
  warning: 'warn',
  cron: 'schedule',
  every: 'setInterval',
})

/** Without a short form. */
const VERBS = ['head', 'options']
const RESPONSE = /^(?:res|response|reply|resp|c|ctx|context)$/
const RESPONSE_METHOD = /^(?:json|send|status|end|sendStatus|render|type|set|header|code|write|writeHead)$/

/** The fix of `object.method is not a function`. */
export function methodFix([, object, method]: RegExpExecArray, facts: FixContext): string | undefined {
  const tools = facts.tools()
  const tool =
    tools.find((name) => name === object || name.replace('_', '') === object!.toLowerCase()) ?? TOOLS[object!]
  if (tool !== undefined && tools.includes(tool)) {
    const methods = facts.methodsOf(tool)
    if (tool === 'http' && VERBS.includes(method!)) {
      return `write http.addEndpoint('/path', '${method!.toUpperCase()}', handler).`
    }
    const other = METHODS[method!]
    const meant = other !== undefined && methods.includes(other) ? other : nearestName(method!, methods)
    return `${meant === undefined ? '' : `did you mean ${tool}.${meant}? `}${tool} has ${methods.join(', ')}.`
  }
  if (RESPONSE.test(object!) && RESPONSE_METHOD.test(method!))
    return 'return the answer: return { success: true, data }; context.setStatus(201) sets its status.'
  return undefined
}

/** The fix of an error of the runtime about tools. */
export function toolFix({ code, message }: HeddleError, facts: FixContext): string | undefined {
  if (code !== 'TOOL_MISSING' || !message.startsWith('Missing tool: ')) return undefined
  const name = message.slice(message.lastIndexOf(' ') + 1)
  const tools = facts.tools()
  const installed = `Installed: ${[...tools].sort().join(', ')}.`
  const owners = tools.filter((tool) => facts.methodsOf(tool).includes(name))
  const taken = oneTool(facts.place?.file)
  const owner = owners.find((tool) => tool === taken) ?? owners[0]
  if (owner !== undefined && taken !== undefined)
    return `the tools come in one object: plugin(({ ${owner} }) => …), or constructor({ ${owner} }: Tools). ${installed}`
  const other = TOOLS[name]
  const meant = other !== undefined && tools.includes(other) ? other : nearestName(name, tools)
  return `${meant === undefined ? '' : `did you mean ${meant}? `}${installed}`
}

/** The name that its function, or its constructor, has where the braces should be. */
function oneTool(file: string | undefined): string | undefined {
  const text = file === undefined ? '' : linesOf(file).join('\n')
  return /\b(?:constructor\s*\(|plugin\(\s*(?:async\b)?\s*\(?)\s*(\w+)/.exec(text)?.[1]
}
