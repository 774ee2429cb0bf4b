const { createHash } = require('node:crypto')
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs')
const { Module } = require('node:module')
const { dirname, join } = require('node:path')
const { constants, Script } = require('node:vm')
const { threadId } = require('node:worker_threads')

const ROOT = join(__dirname, '../../../')
const FOLDER = join(ROOT, 'node_modules/.cache/heddle-tests/code/')
/** What V8 makes of a text depends on it. */
const ENGINE = `${process.version} ${process.arch}`
const [HEAD, END] = Module.wrapper

/**
 * Keeps what V8 has compiled of every module of the project and its packages, for the next thread that loads it: a fifth of the start of a
 * lane was the compiler. What a test writes is compiled as ever.
 */
exports.keepCode = () => {
  mkdirSync(FOLDER, { recursive: true })
  const compile = Module.prototype._compile
  Module.prototype._compile = function (text, path, format) {
    const script = format === 'module' || !path.startsWith(ROOT) ? null : scriptOf(text, path)
    return script === null ? compile.call(this, text, path, format) : script.run(this)
  }
}

/** @returns null for what is no CommonJS: Node tells which it is */
function scriptOf(text, path) {
  const file = FOLDER + createHash('sha1').update(`${ENGINE}\n${path}\n${text}`).digest('hex')
  const cachedData = read(file)
  let script
  try {
    script = new Script(HEAD + text + END, {
      filename: path,
      // The first line is where the module's own begins.
      columnOffset: -HEAD.length,
      cachedData,
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    })
  } catch {
    return null
  }
  return {
    run(module) {
      const body = script.runInThisContext()
      const result = body.call(module.exports, module.exports, requireOf(module), module, path, dirname(path))
      // Now it has the functions that are needed at once. A process with other flags of V8 refuses it, and leaves it to the others.
      if (cachedData === undefined) write(file, script.createCachedData())
      return result
    },
  }
}

function requireOf(module) {
  const require = (name) => module.require(name)
  require.resolve = (name, options) => Module._resolveFilename(name, module, false, options)
  require.resolve.paths = (name) => Module._resolveLookupPaths(name, module)
  require.main = process.mainModule
  require.extensions = Module._extensions
  require.cache = Module._cache
  return require
}

function read(file) {
  try {
    return readFileSync(file)
  } catch {
    // Not compiled yet.
    return undefined
  }
}

/** Whole or not at all: another process may read it meanwhile. */
function write(file, data) {
  const fresh = `${file}.${process.pid}.${threadId}`
  writeFileSync(fresh, data)
  renameSync(fresh, file)
}
