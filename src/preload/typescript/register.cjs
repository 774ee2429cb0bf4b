// Puts the loader of TypeScript into a thread.
const { statSync } = require('node:fs')
const { enableCompileCache, Module } = require('node:module')
const { join } = require('node:path')
const { fileURLToPath } = require('node:url')
const { isMainThread } = require('node:worker_threads')
const { isApplication, isOurs, keptFolder } = require('../kept-folder.cjs')
const { readCode } = require('../text-file.cjs')
const { hasAgents, hasImports } = require('../launch.cjs')
const { installCheck } = require('./import-names.cjs')
const { OtherLoader } = require('./other-loader.cjs')
const { loadPacked } = require('./load-packed.cjs')
const { openPack } = require('./pack.cjs')
const { nameLines } = require('./stack-lines.cjs')
const { strip } = require('./strip.cjs')
const { loadLanguagesOnDemand } = require('./zod-languages.cjs')

/** For a package that is there for `import` alone: Node loads its ES modules by `require` as well. */
const IMPORTED = { conditions: new Set(['import', 'node', 'module-sync']) }

const IS_REGISTERED = Symbol.for('heddle.typescript')

/**
 * Lets this thread load TypeScript with `require`: types are stripped once, and the text is kept; Node keeps what V8 compiles. Most of a start was tsx,
 * and the maps of all modules. A module with a top-level `await` cannot be loaded so. What an application has beyond plain TypeScript files is left to tsx.
 */
exports.register = () => {
  if (globalThis[IS_REGISTERED]) return
  globalThis[IS_REGISTERED] = true
  installCheck()
  const other = new OtherLoader()
  other.install(() => {
    nameLines()
    loadLanguagesOnDemand()
    const load = (module, path) => {
      if (isApplication(path) && other.isWanted) return other.load('.ts', module, path)
      // A pipe would block until somebody writes, and a device has no end.
      if (!statSync(path).isFile()) throw new Error(`${path} is not a file`)
      module._compile(strip(path, readCode(path)), path, 'commonjs')
    }
    for (const extension of ['.ts', '.mts', '.cts']) Module._extensions[extension] = load
    // Compiled code that is kept does not count what it runs.
    if (keptFolder !== null && !process.env.NODE_V8_COVERAGE) {
      // An agent patches modules as Node loads them.
      const pack = hasAgents ? null : openPack()
      if (pack === null) enableCompileCache(join(keptFolder, 'compiled'))
      else loadPacked(pack)
    }
    const resolveFilename = Module._resolveFilename
    Module._resolveFilename = (request, parent, ...rest) => {
      const own = resolveOwn(request, parent)
      if (own !== undefined) return own
      const name = request.startsWith('file:') ? fileURLToPath(request) : request
      try {
        return resolveFilename(name, parent, ...rest)
      } catch (error) {
        const isOfApplication = /\.[cm]?[jt]sx?$/.test(parent?.filename ?? '') && isApplication(parent.filename)
        if (!isOfApplication) throw error
        if (error.code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') return resolveFilename(name, parent, false, IMPORTED)
        if (error.code === 'MODULE_NOT_FOUND') return other.resolve(name, parent, ...rest)
        throw error
      }
    }
  })
  if (isMainThread) {
    const { runMain } = Module
    Module.runMain = (entry = process.argv[1]) => {
      if (!/\.[ct]s$/.test(entry ?? '')) return runMain(entry)
      return hasImports ? runMain(join(__dirname, 'program.cjs')) : Module._load(entry, null, true)
    }
  }
}

/**
 * What a module of the project imports from beside it, by its whole name: no other place is searched, and no link is followed.
 * @returns {string | undefined} undefined for what Node has to resolve
 */
function resolveOwn(request, parent) {
  if (!request.startsWith('.') || !request.endsWith('.ts') || !isOurs(parent?.filename ?? '')) return undefined
  const path = join(parent.path, request)
  return path in Module._cache || statSync(path, { throwIfNoEntry: false })?.isFile() ? path : undefined
}
