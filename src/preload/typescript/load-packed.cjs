// Loads modules of the runtime and its packages from a pack. Those of an application elsewhere are loaded as ever.
const { Module } = require('node:module')
const { dirname } = require('node:path')
const { isOurs } = require('../kept-folder.cjs')

/** @param {import('./pack.cjs').Pack} pack */
exports.loadPacked = (pack) => {
  for (const extension of ['.js', '.ts']) {
    const load = Module._extensions[extension]
    Module._extensions[extension] = (module, path) => {
      const script = isOurs(path) ? pack.scriptOf(path) : null
      return script === null ? load(module, path) : run(script, module, pack)
    }
  }
  const compile = Module.prototype._compile
  Module.prototype._compile = function (text, path, format) {
    const script = format === 'module' || !isOurs(path) ? null : pack.compile(path, text)
    return script === null ? compile.call(this, text, path, format) : run(script, this, pack)
  }
}

/** A module that was found without Node, which needs folders to look in for what this one does not name itself. */
class PackedModule extends Module {
  get paths() {
    return Module._nodeModulePaths(this.path)
  }
}

function run(script, module, pack) {
  const { filename, exports: own } = module
  return script.runInThisContext().call(own, own, requireOf(module, pack), module, filename, dirname(filename))
}

function requireOf(module, pack) {
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
  // As Node makes it.
  require.resolve = (name, options) => Module._resolveFilename(name, module, false, options)
  require.resolve.paths = (name) => Module._resolveLookupPaths(name, module)
  require.main = process.mainModule
  require.extensions = Module._extensions
  require.cache = Module._cache
  return require
}

function load(script, path, parent, pack) {
  const module = new PackedModule(path, parent)
  module.filename = path
  Module._cache[path] = module
  try {
    run(script, module, pack)
  } catch (error) {
    delete Module._cache[path]
    throw error
  }
  module.loaded = true
  return module.exports
}
