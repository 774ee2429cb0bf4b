import { HeddleError } from '../../core/errors/catalogue.ts'
import { codeOf, isInstance, messageOf } from '../../core/errors/description.ts'
import { linesOf, type SourcePlace } from '../../core/errors/source-place.ts'
import { databaseMend } from './database.ts'
import { methodMend, toolMend } from './tools.ts'
import { unawaitedMend } from './unawaited-value.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** What a thread knows that helps to mend a mistake. */
export interface MendFacts {
  /** DOMAINS_DIR. */
  domainsDirs: readonly string[]
  /** Names of the installed tools. */
  tools(): readonly string[]
  /** The methods that a plugin gets of a tool. */
  methodsOf(tool: string): readonly string[]
  /** The file of a plugin. */
  fileOf(plugin: string): string | undefined
}

export interface MendContext extends MendFacts {
  /** The line that has thrown the error, or waits for what has; undefined when no stack has one. */
  place: SourcePlace | undefined
}

/** How to mend a mistake that beginners make, in one sentence; undefined for all other errors. */
export function mendOf(thrown: unknown, context: MendContext): string | undefined {
  if (!isInstance(thrown, Error)) return thrownValueMend(thrown)
  if (thrown instanceof HeddleError) return databaseMend(thrown, context.domainsDirs) ?? toolMend(thrown, context)
  const message = messageOf(thrown)
  for (const [fault, mend] of MENDS) {
    const found = fault.exec(message)
    const text = found === null ? undefined : mend(found, context)
    if (text !== undefined) return text
  }
  return CODES[codeOf(thrown) ?? '']
}

type Mend = (found: RegExpExecArray, context: MendContext) => string | undefined

/** By the messages of V8. */
const MENDS: readonly [RegExp, Mend][] = [
  [/^Must call super constructor/, () => 'call super() first in the constructor, before `this`.'],
  [
    /^Class extends value/,
    () => "what stands behind `extends` is no class here: import { Plugin } from 'heddle', without `type`.",
  ],
  [/^([\w$]+) is not defined$/, ([, name], { place, tools }) => undefinedName(name!, place, tools())],
  [
    /(?:^|\.|#)([\w$]+)\.([\w$]+) is not a function$/,
    (found, context) => unawaitedMend(found[1]!, context.place) ?? methodMend(found, context),
  ],
  [/^([\w$]+) is not iterable/, ([, name], { place }) => unawaitedMend(name!, place)],
  [/^Cannot read properties of undefined/, (_, { place }) => requestMend(place)],
  [
    /^Cannot (?:read|write) private member|^Receiver must be/,
    () => '`this` is another object here: write the function as an arrow function, `() => …`.',
  ],
  [
    /^Converting circular structure to JSON/,
    () => 'JSON cannot hold what contains itself: return the fields that the client needs.',
  ],
  [/^Assignment to constant variable/, () => 'declare it with `let`.'],
]

/** By the codes of Node. */
const CODES: Readonly<Record<string, string>> = {
  ERR_IMPORT_ATTRIBUTE_MISSING: "write import data from './data.json' with { type: 'json' }.",
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
function requestMend(place: SourcePlace | undefined): string | undefined {
  const line = place === undefined ? '' : (linesOf(place.file)[place.line - 1] ?? '')
  if (!/\b(?:req|request|ctx|context)\.(?:body|query|params)\b/.test(line)) return undefined
  return 'the first argument of a handler is its data, made of query, body and path parameters: ({ name }, context) => ….'
}

/** What is no Error has no stack. */
function thrownValueMend(thrown: unknown): string {
  const {
    status,
    statusCode = status,
    message,
  } = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Record<string, unknown>
  if (typeof statusCode === 'number')
    return `throw new HttpError(${statusCode}, ${toJson(message ?? 'why')}), which has a line and is the answer.`
  return 'throw an Error, which has a line: throw new Error(…); or throw new HttpError(400, …) for an answer.'
}
