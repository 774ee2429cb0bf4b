const { spawnSync } = require('node:child_process')
const { createHash } = require('node:crypto')
const { readFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { basename, join } = require('node:path')
const { isMainThread } = require('node:worker_threads')
const { checkImports } = require('./import-names.cjs')
const { isApplication, isOurs, isRuntime, keptFolder } = require('./places.cjs')
const { plainExports } = require('./plain-exports.cjs')
const { writeWhole } = require('./script.cjs')

const OPTIONS = {
  loader: 'ts',
  format: 'cjs',
  target: 'node20',
  platform: 'node',
  sourcemap: 'inline',
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
const AS_TEXT = JSON.stringify([OPTIONS, BANNER, 'plain exports without helpers, checked imports'])

/** So many modules that are not stripped yet are the first start of a checkout: each takes 10 ms alone, and together a tenth of that. */
const MANY = 20

let esbuild
let fresh = 0

/** The text of a TypeScript file as a CommonJS module. It depends on the file's name, not on its folder: it is kept for copies of a checkout, too. */
exports.strip = (path, text) => {
  if (keptFolder === null) return transform(path, text)
  const file = exports.strippedFile(path, text)
  const known = read(file) ?? (isFirstStart(path) ? stripAll(file) : null)
  if (known !== null) return known
  const code = transform(path, text)
  writeWhole(file, [Buffer.from(code)])
  return code
}

/** True once, in a process that strips module after module of the runtime. */
const isFirstStart = (path) => isRuntime(path) && isMainThread && ++fresh === MANY

/** Strips all that a service loads in a process of its own. @returns the text of one of them, null where that has failed */
function stripAll(file) {
  if (process.stderr.isTTY) process.stderr.write('The first start of this checkout: TypeScript is compiled, once\n')
  spawnSync(process.execPath, [join(__dirname, 'strip-ahead.cjs')], { stdio: 'ignore' })
  return read(file)
}

/** Where a stripped text is kept: that of an application apart, for it changes more often. */
exports.strippedFile = (path, text) => `${keptFolder}${isOurs(path) ? '' : 'written/'}${nameOf(path, text)}`

function transform(path, text) {
  const { transformSync } = exports.loadEsbuild()
  try {
    return exports.finish(path, transformSync(text, exports.optionsOf(text, basename(path))).code)
  } catch {
    // A fault names the whole path.
    return exports.finish(path, transformSync(text, exports.optionsOf(text, path)).code)
  }
}

exports.finish = (path, code) =>
  isApplication(path) ? checkImports(plainExports(code.replace(PACKAGE_IMPORT, 'import($1)'))) : plainExports(code)

exports.optionsOf = (text, sourcefile) => ({
  ...OPTIONS,
  banner: text.includes('import.meta') ? BANNER : '',
  sourcefile,
})

/** Without the thread that it starts for many files: here it is one or two. */
exports.loadEsbuild = () => {
  if (esbuild === undefined) {
    const threads = process.env.ESBUILD_WORKER_THREADS
    process.env.ESBUILD_WORKER_THREADS = '0'
    esbuild = createRequire(require.resolve('tsx'))('esbuild')
    if (threads === undefined) delete process.env.ESBUILD_WORKER_THREADS
    else process.env.ESBUILD_WORKER_THREADS = threads
  }
  return esbuild
}

function nameOf(path, text) {
  return createHash('sha1')
    .update(`${isApplication(path)} ${AS_TEXT}\n${basename(path)}\n${text}`)
    .digest('hex')
}

function read(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Not stripped yet.
    return null
  }
}
