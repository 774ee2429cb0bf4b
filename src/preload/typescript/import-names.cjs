// Names that a module imports are there, or it is refused.
const { types } = require('node:util')

const CHECK = Symbol.for('heddle.imports')
/** What esbuild makes of an import. */
const IMPORT = /^(?:var|const) (import_[\w$]+) = (?:__toESM\()?require\(("[^"\n]+")\)/gm

/**
 * Lets a CommonJS module of esbuild check, once it has run, that the names exist which it imports and uses: as ES modules do, where it would be undefined
 * until it is called. Types are gone by then.
 */
exports.checkImports = (code) => {
  const imports = [...code.matchAll(IMPORT)].flatMap(([, variable, from]) => {
    const uses = code.matchAll(new RegExp(`\\b${variable.replaceAll('$', '\\$')}\\.([\\w$]+)`, 'g'))
    const names = [...new Set([...uses].map(([, name]) => name))]
    return names.length === 0 ? [] : [`[${variable}, ${from}, ${JSON.stringify(names)}]`]
  })
  if (imports.length === 0) return code
  return `${code}\nglobalThis[Symbol.for("${CHECK.description}")]?.(require, __filename, [${imports.join(', ')}]);`
}

/** Makes the check in this thread. */
exports.installCheck = () => {
  globalThis[CHECK] = (require, file, imports) => {
    for (const [exported, from, names] of imports) {
      const missing = names.find((name) => !has(exported, name))
      // Of modules that import each other, one has not run yet.
      if (missing === undefined || require.cache[require.resolve(from)]?.loaded === false) continue
      const fault = new SyntaxError(`The requested module '${from}' does not provide an export named '${missing}'`)
      // As Node begins it.
      fault.stack = `${file}:1\n${fault.stack}`
      throw fault
    }
  }
}

function has(exported, name) {
  if ((typeof exported !== 'object' && typeof exported !== 'function') || exported === null)
    return exported?.[name] !== undefined
  // It may have whatever it is asked for.
  return types.isProxy(exported) || name in exported
}
