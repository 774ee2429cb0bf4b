// Why a plugin did not boot: its line, its mistake, its fix.
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { nearestName } from '../../core/config/nearest-name.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { codeOf, messageOf, messageWithCauses, stackOf } from '../../core/errors/description.ts'
import {
  framesOf,
  isOfPlugin,
  linesOf,
  placeInPlugin,
  placeOf,
  placeOfText,
  type SourcePlace,
  shown,
  showPlace,
} from '../../core/errors/places.ts'
import { placeOfThrow } from './fault-record.ts'
import { FILE_FIX, type FixFacts, fixOf, NOT_YET } from './fixes.ts'

/** The stage of its boot in which a plugin failed. */
export type BootStage = 'load' | 'constructor' | 'onBoot'

export interface BootContext {
  /** The plugin's file, absolute. */
  file: string
  stage: BootStage
  facts: FixFacts
}

/** Why a plugin did not boot. */
export interface BootFault {
  /** One line, for `/system/status`. */
  status: string
  /** For the log: the mistake, the line, the fix. */
  text: string
}

interface Explained {
  mistake: string
  place?: SourcePlace | undefined
  fix?: string | undefined
}

/**
 * Explains to a plugin's author why it did not boot.
 * @param error what was thrown; where that is no Error, its text
 */
export function bootFault(error: Error | string, context: BootContext): BootFault {
  const { mistake, place, fix } = explain(error, context)
  const where = place === undefined ? [`${shown(context.file)}, ${STAGES[context.stage]}`] : showPlace(place)
  const lines = [mistake, ...where.map((line) => `  ${line}`), ...(fix === undefined ? [] : [`  Fix: ${fix}`])]
  // A file that does not load has no plugin whose name would lead to it: its place belongs to the message.
  const isUnloaded = context.stage === 'load' && place !== undefined && !(error instanceof HeddleError)
  return { status: isUnloaded ? `${showPlace(place)[0]}: ${mistake}` : mistake, text: lines.join('\n') }
}

const STAGES: Record<BootStage, string> = {
  load: 'while it was loaded',
  constructor: 'in its constructor',
  onBoot: 'while it booted',
}

function explain(error: Error | string, context: BootContext): Explained {
  const { file } = context
  const syntax = syntaxFault(error, file)
  if (syntax !== undefined) return syntax
  const unresolved = addonFault(error, file) ?? unresolvedImport(error, file) ?? packageFault(error, file)
  if (unresolved !== undefined) return unresolved
  const place = placeOfUse(error) ?? placeOf(error, dirname(dirname(file))) ?? placeOfThrow(file, error)
  const fix = fixOf(error, { ...context.facts, place: place ?? { file, line: 1, column: 1 } })
  if (error instanceof HeddleError) return { mistake: messageOf(error), place, fix, ...ofRuntime(error, context) }
  return { mistake: typeof error === 'string' ? `It threw ${error}` : messageWithCauses(error), place, fix }
}

/** Of a name that was used too early: lines that import or export it only pass it on. */
function placeOfUse(error: unknown): SourcePlace | undefined {
  const [, made, exported] = NOT_YET.exec(messageOf(error)) ?? []
  const name = made ?? exported
  if (name === undefined) return undefined
  return framesOf(error).find(({ file, line }) => {
    const text = linesOf(file)[line - 1] ?? ''
    return isOfPlugin(file) && text.includes(name) && !/^\s*(?:import|export)\b.*\bfrom\b/.test(text)
  })
}

/** Errors of the runtime itself: each of them has one fix. */
function ofRuntime({ code, message }: HeddleError, { file, facts: { fileOf } }: BootContext): Partial<Explained> {
  switch (code) {
    case 'HTTP_ROUTE_TAKEN': {
      const first = fileOf(message.slice(message.lastIndexOf(' ') + 1))
      const where = first === undefined ? '' : `, the other stands in ${shown(first)}`
      return { fix: `give one of the two another path or another method${where}.` }
    }
    case 'HTTP_PATH_INVALID': {
      const [meant] = /did you mean \S+$/.exec(message) ?? []
      if (meant !== undefined) return { mistake: message.slice(0, -meant.length - 2), fix: meant }
      return { fix: PATH_FIXES.find(([fault]) => fault.test(message))?.[1] }
    }
    case 'PLUGIN_INVALID':
      return { place: { file, line: 1, column: 1 } }
    case 'CONFIG_MISSING':
    case 'CONFIG_INVALID':
      return message.includes('secret of the runtime')
        ? {}
        : { fix: 'set the variable, in .env for example, or give config.get a default.' }
    case 'SCHEDULER_INVALID':
      return message.includes('cron expression')
        ? { fix: "five fields, minute hour day month weekday, in UTC: '0 3 * * *' is every day at 03:00." }
        : {}
  }
  return {}
}

const PATH_FIXES: readonly [RegExp, string][] = [
  [
    /^\/\S* "(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)":/i,
    "the path comes first: addEndpoint('/users/:id', 'GET', handler).",
  ],
  [
    /must be a Standard Schema/,
    "write a schema, for example z.object({ name: z.string() }), with import { z } from 'zod'.",
  ],
  [/handler must be/, 'hand over a method of the plugin, like this.show; a name that it does not have is undefined.'],
  [/must start with/, "write it from the root: '/users/:id'."],
  [
    /'\*' must be/,
    "one wildcard, at the end: '/files/*'; for what stands before it take parameters, like '/:folder/*'.",
  ],
  [/is no parameter here/, "a colon makes a parameter: '/users/:id' where OpenAPI has '/users/{id}'."],
  [/stands there twice/, "give each parameter a name of its own: '/users/:userId/orders/:orderId'."],
  [/while the plugin boots, not later/, 'register it in onBoot, or in the function of plugin(…).'],
]

/** A syntax error, as the compiler or Node reports it. */
function syntaxFault(error: unknown, file: string): Explained | undefined {
  const [, path, line, column, text] = /^(.+?):(\d+):(\d+): (?:ERROR|error): (.*)$/m.exec(messageOf(error)) ?? []
  if (path !== undefined) {
    const isAwait = /top-level await/i.test(text!)
    return {
      mistake: isAwait ? 'await at the top level of a plugin file' : `Syntax error: ${text}`,
      // The compiler counts columns from 0.
      place: { file: resolve(path), line: Number(line), column: Number(column) + 1 },
      fix: syntaxFix(text!),
    }
  }
  if (!(error instanceof SyntaxError)) return undefined
  // The stack of an error that Node itself throws begins with the place.
  const [, nativeFile, nativeLine] = /^(?:file:\/\/)?(\/.*?):(\d+)\n/.exec(stackOf(error) ?? '') ?? []
  const place = nativeFile === undefined ? { file, line: 1 } : { file: nativeFile, line: Number(nativeLine) }
  // Node also reports so that a name is imported which the other file does not export.
  const message = messageOf(error)
  const isImport = message.includes('does not provide an export')
  // `JSON.parse`, `new RegExp` and others throw one, too: the file itself is sound.
  if (!isImport && nativeFile === undefined && placeInPlugin(error) !== undefined) return undefined
  if (!isImport) return { mistake: `Syntax error: ${message}`, place: { ...place, column: 1 }, fix: syntaxFix(message) }
  const name = /export named '([^']+)'/.exec(message)?.[1]
  return {
    mistake: message,
    place: (name === undefined ? undefined : placeOfText(place.file, name)) ?? { ...place, column: 1 },
    fix: `export ${name ?? 'it'} there, correct the name, or write \`import type\` for a type.`,
  }
}

/** As esbuild and V8 say it. */
const SYNTAX_FIXES: readonly [RegExp, string][] = [
  [/top-level await/i, 'move it into onBoot or the function of plugin(…), which may be async.'],
  [
    /unexpected "super"|'super' keyword unexpected/i,
    "write `class … extends Plugin`, and import { Plugin } from 'heddle'.",
  ],
  [
    /class constructor (?:cannot|may not) be an? async/i,
    'move what has to wait into `async onBoot()`: a constructor cannot wait.',
  ],
  [/"await" can only be used|await is only valid/i, 'write `async` before the function that has this `await`.'],
  [/unexpected end of (?:file|input)|expected "[)\]}]" but found/i, 'look for a bracket above that is not closed.'],
  [/parameter decorators only work/i, 'write "experimentalDecorators": true into tsconfig.json.'],
  [/source phase imports are not/i, FILE_FIX],
  [/deferred imports are not/i, 'load it where it is needed, in an async function: await import(…).'],
  [/import statement outside a module/i, 'write "type": "module" into package.json.'],
]

function syntaxFix(text: string): string | undefined {
  return SYNTAX_FIXES.find(([fault]) => fault.test(text))?.[1]
}

/** An import of a file or a package that does not exist. */
function unresolvedImport(error: unknown, file: string): Explained | undefined {
  const code = codeOf(error)
  if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_MODULE_NOT_FOUND') return undefined
  const message = messageOf(error)
  const named = /Cannot find (?:module|package) '([^']+)'/.exec(message)?.[1]
  if (named === undefined) return undefined
  const importer = /(?:imported from |Require stack:\n- )(.+)$/m.exec(message)?.[1] ?? file
  // Node names the path that it looked for, the source has the path as it was written.
  const stem = basename(named)
  const place = placeOfText(importer, named) ?? placeOfText(importer, stem)
  const mistake = `Cannot find ${named.startsWith('/') ? shown(named) : `'${named}'`}, which ${shown(importer)} imports`
  if (!/^[./]/.test(named)) return { mistake, place, fix: `npm install ${packageOf(named)}, or correct its name.` }
  const folder = dirname(resolve(dirname(importer), named))
  const siblings = existsSync(folder) ? readdirSync(folder) : []
  const meant = siblings.includes(`${stem}.ts`) ? `${stem}.ts` : nearestName(stem, siblings)
  return {
    mistake,
    place,
    fix:
      meant === undefined
        ? `there is no such file in ${shown(folder)}.`
        : `did you mean ${shown(join(folder, meant))}?`,
  }
}

/** As `node-gyp-build`, `bindings` and Node say that the native part of a package is not there. */
const NO_ADDON = /No native build was found|Could not locate the bindings file|Cannot find module '[^']*\.node'/

/** The native part of a package: it is not there, or it is one for another Node. */
function addonFault(error: unknown, file: string): Explained | undefined {
  const message = messageOf(error)
  const name = /node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/\s]+)/.exec(message)?.[1]
  if (name === undefined) return undefined
  const place = placeOfText(file, name)
  const [, built, wanted] = /NODE_MODULE_VERSION (\d+)\D+NODE_MODULE_VERSION (\d+)/.exec(message) ?? []
  if (built !== undefined) {
    const mistake = `'${name}' was installed for another Node: it has NODE_MODULE_VERSION ${built}, and this Node ${wanted}`
    return { mistake, place, fix: `npm rebuild ${name}, with the Node that runs the service.` }
  }
  if (message.includes('did not self-register')) {
    const mistake = `'${name}' does not load here: it was installed for another Node, or knows one thread only`
    const fix = `npm rebuild ${name}; if that does not help, use it on the primary thread: \`{ thread: 'primary' }\` behind the plugin's function.`
    return { mistake, place, fix }
  }
  if (!NO_ADDON.test(message)) return undefined
  const mistake = `'${name}' has no native part for this machine: its install script did not run, or it has none`
  return {
    mistake,
    place,
    fix: `allow it, "allowScripts": { "${name}": true } in package.json, and npm rebuild ${name}.`,
  }
}

/** A package that is there, and of which this cannot be loaded. */
function packageFault(error: unknown, file: string): Explained | undefined {
  const message = messageOf(error)
  // Node may name who has required it, too.
  const [at = message] = /Requir(?:ing|ed module:) .*/.exec(message) ?? []
  const name = /.*node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(at)?.[1] ?? 'the package'
  const place = placeOfText(file, name)
  switch (codeOf(error)) {
    case 'ERR_PACKAGE_PATH_NOT_EXPORTED':
      return { mistake: message, place, fix: `import a part that ${name} names under "exports" in its package.json.` }
    case 'ERR_REQUIRE_ASYNC_MODULE':
      return {
        mistake: `'${name}' has await at its top level, and plugins are loaded with \`require\``,
        place,
        fix: `load it where it may wait, in \`async onBoot()\`: this.lib = await import('${name}').`,
      }
  }
  return undefined
}

/** `@scope/name/part` → `@scope/name` */
function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}
