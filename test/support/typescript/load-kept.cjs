const { Module } = require('node:module')
const { dirname } = require('node:path')
const { isOurs, keepModule, keepRun, keptModule } = require('./kept-modules.cjs')

/** Loads modules of the project and its packages as they are kept. What a test writes is compiled as ever. */
exports.loadKept = () => {
  for (const extension of ['.js', '.cjs', '.ts']) {
    const load = Module._extensions[extension] ?? Module._extensions['.js']
    Module._extensions[extension] = (module, path) => {
      const script = isOurs(path) ? keptModule(path) : null
      if (script === null) load(module, path)
      else run(script, module, path)
    }
  }
  const compile = Module.prototype._compile
  Module.prototype._compile = function (text, path, format) {
    const script = format === 'module' || !isOurs(path) ? null : keepModule(path, text)
    if (script === null) return compile.call(this, text, path, format)
    const result = run(script, this, path)
    keepRun(path, script)
    return result
  }
}

function run(script, module, path) {
  const body = script.runInThisContext()
  return body.call(module.exports, module.exports, requireOf(module), module, path, dirname(path))
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
