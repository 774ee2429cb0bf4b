// The text of a TypeScript file as a CommonJS module: its types are stripped once, and the text is kept with its map beside it.
const { spawnSync } = require('node:child_process')
const { hash } = require('node:crypto')
const { readFileSync } = require('node:fs')
const { Module } = require('node:module')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { isMainThread } = require('node:worker_threads')
const { isApplication, isOurs, isRuntime, keptFolder, trim, writeWhole } = require('../kept-folder.cjs')
const { checkImports } = require('./import-names.cjs')
const { plainExports } = require('./plain-exports.cjs')

const OPTIONS = {
  loader: 'ts',
  format: 'cjs',
  target: 'node22',
  platform: 'node',
  sourcemap: 'external',
  sourcesContent: false,
  tsconfigRaw: { compilerOptions: { target: 'es2023', verbatimModuleSyntax: true } },
  // `import()` would ask a loader that knows no TypeScript.
  supported: { 'dynamic-import': false },
  define: {
    'import.meta.url': 'importMetaUrl',
    'import.meta.resolve': 'importMetaResolve',
    'import.meta.dirname': '__dirname',
    'import.meta.filename': '__filename',
  },
}
/** What a module knows of itself, for those that ask. */
const BANNER = `const importMetaUrl = require('node:url').pathToFileURL(__filename).href,
    importMetaResolve = (name) => name.startsWith('.') ? new URL(name, importMetaUrl).href : require('node:module').isBuiltin(name) ? name : require('node:url').pathToFileURL(require.resolve(name)).href;`
/** What becomes of an \`import()\` of a package, which Node loads well. */
const PACKAGE_IMPORT =
  /Promise\.resolve\(\)\.then\(\(\) => (?:\/\* @__PURE__ \*\/ )?__toESM\(require\(("(?![.#/]|heddle[/"])[^"\n]+")\)\)\)/g

/** What a kept text depends on, beside its own. */
const AS_TEXT = JSON.stringify([OPTIONS, BANNER, 'plain exports without helpers, checked imports, map beside it'])

/** So many modules that are not stripped yet are the first start of a checkout: each takes 10 ms alone, and together a tenth of that. */
const MANY = 20

let esbuild
let fresh = 0

/** The text of a TypeScript file as a CommonJS module, which names its map. */
exports.strip = (path, text) => {
  const known = read(path, text)
  if (known !== null) return known
  if (isMainThread && keptFolder !== null && ++fresh === MANY) {
    trim()
    if (isRuntime(path)) stripAll()
    const stripped = read(path, text)
    if (stripped !== null) return stripped
  }
  return exports.keep(path, text, exports.transform(path, text))
}

/** Without keeping it. */
exports.transform = (path, text) => exports.loadEsbuild().transformSync(text, exports.optionsOf(path, text))

/** Strips all that a service loads in a process of its own. */
function stripAll() {
  if (process.stderr.isTTY) process.stderr.write('The first start of this checkout: TypeScript is compiled, once\n')
  // It is no program of the service, which an agent would watch.
  const env = { ...process.env, NODE_OPTIONS: '' }
  spawnSync(process.execPath, [join(__dirname, 'strip-ahead.cjs')], { stdio: 'ignore', env })
}

/** Where a stripped text is kept: that of an application apart, for it changes more often. */
exports.strippedFile = (path, text) =>
  join(keptFolder, isOurs(path) ? 'stripped' : 'written', hash('sha1', `${AS_TEXT}\n${path}\n${text}`))

exports.optionsOf = (path, text) => ({
  ...OPTIONS,
  banner: text.includes('import.meta') ? BANNER : '',
  sourcefile: path,
})

/**
 * Keeps what esbuild has made of a file. The map has a file of its own, which the text names: V8 holds the text of a module in each of its threads, and a
 * third of it would be a map that nobody reads, except a debugger and who asks for a line of the source.
 * @returns {string} the text
 */
exports.keep = (path, text, { code, map }) => {
  const own = plainExports(isApplication(path) ? code.replace(PACKAGE_IMPORT, 'import($1)') : code)
  const body = isApplication(path) ? checkImports(own) : own
  const placed = JSON.stringify({ ...JSON.parse(map), sources: [pathToFileURL(path).href] })
  const named = (url) => `${body}\n//# sourceMappingURL=${url}\n`
  if (keptFolder !== null) {
    const file = exports.strippedFile(path, text)
    const stripped = named(pathToFileURL(`${file}.map`).href)
    if (writeWhole(`${file}.map`, placed) && writeWhole(file, stripped)) return stripped
  }
  return named(`data:application/json;base64,${Buffer.from(placed).toString('base64')}`)
}

/**
 * Without the thread that it starts for many files: here it is one or two, and a debugger that holds each new thread would hold the one that waits for
 * it. tsx may have loaded esbuild with one: its own stays.
 */
exports.loadEsbuild = () => {
  if (esbuild === undefined) {
    const path = require.resolve('esbuild')
    const ofTsx = Module._cache[path]
    const threads = process.env.ESBUILD_WORKER_THREADS
    delete Module._cache[path]
    process.env.ESBUILD_WORKER_THREADS = '0'
    esbuild = require('esbuild')
    if (threads === undefined) delete process.env.ESBUILD_WORKER_THREADS
    else process.env.ESBUILD_WORKER_THREADS = threads
    if (ofTsx !== undefined) Module._cache[path] = ofTsx
  }
  return esbuild
}

function read(path, text) {
  if (keptFolder === null) return null
  try {
    return readFileSync(exports.strippedFile(path, text), 'utf8')
  } catch {
    // Not stripped yet.
    return null
  }
}
