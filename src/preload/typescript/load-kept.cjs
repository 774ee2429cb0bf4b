const { Module } = require('node:module')
const { dirname } = require('node:path')
const { keepModule, keepRun, keptModule } = require('./kept-modules.cjs')
const { openPack } = require('./pack.cjs')
const { isOurs, keptFolder } = require('./places.cjs')

/** Loads modules of the runtime and its packages as they are kept. Those of an application elsewhere are compiled as ever. */
exports.loadKept = () => {
  // Compiled code that is kept does not count what it runs.
  if (keptFolder === null || process.env.NODE_V8_COVERAGE) return
  const pack = openPack()
  for (const extension of ['.js', '.cjs', '.ts']) {
    const load = Module._extensions[extension] ?? Module._extensions['.js']
    Module._extensions[extension] = (module, path) => {
      if (!isOurs(path)) return load(module, path)
      const script = pack?.scriptOf(path) ?? null
      if (script !== null) return run(script, module, path, pack)
      const kept = keptModule(path)
      if (kept === null) return load(module, path)
      pack?.add(path, kept.text, kept.script)
      run(kept.script, module, path, pack)
    }
  }
  const compile = Module.prototype._compile
  Module.prototype._compile = function (text, path, format) {
    const kept = format === 'module' || !isOurs(path) ? null : keepModule(path, text)
    if (kept === null) return compile.call(this, text, path, format)
    pack?.add(path, kept.text, kept.script)
    const result = run(kept.script, this, path, pack)
    keepRun(path, kept.script)
    return result
  }
}

/** A module that was found without Node, which needs folders to look in for what this one does not name itself. */
class PackedModule extends Module {
  get paths() {
    return Module._nodeModulePaths(this.path)
  }
}

function run(script, module, path, pack) {
  const body = script.runInThisContext()
  const require = pack === null ? requireOf(module) : packedRequireOf(module, pack)
  return body.call(module.exports, module.exports, require, module, path, dirname(path))
}

function requireOf(module) {
  const require = (name) => module.require(name)
  return complete(require, module)
}

function packedRequireOf(module, pack) {
  const require = (name) => {
    if (name.startsWith('node:')) return module.require(name)
    const path = pack.pathOf(module.filename, name)
    if (path === undefined) {
      pack.addName(module.filename, name, Module._resolveFilename(name, module, false))
      return module.require(name)
    }
    const known = Module._cache[path]
    if (known !== undefined) return known.exports
    const script = pack.scriptOf(path)
    return script === null ? module.require(name) : load(script, path, module, pack)
  }
  return complete(require, module)
}

/** As Node does it. */
function load(script, path, parent, pack) {
  const module = new PackedModule(path, parent)
  module.filename = path
  Module._cache[path] = module
  try {
    run(script, module, path, pack)
  } catch (error) {
    delete Module._cache[path]
    throw error
  }
  module.loaded = true
  return module.exports
}

function complete(require, module) {
  require.resolve = (name, options) => Module._resolveFilename(name, module, false, options)
  require.resolve.paths = (name) => Module._resolveLookupPaths(name, module)
  require.main = process.mainModule
  require.extensions = Module._extensions
  require.cache = Module._cache
  return require
}
