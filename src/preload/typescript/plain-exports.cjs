/** What esbuild writes for the names that a module exports: a function for each. */
const EXPORTS = /^__export\(\w+, \{\n((?: {2}.+\n)+)\}\);$/m
const EXPORT = /^ {2}("[^"]+"|[\w$]+): \(\) => (.+?),?$/
/** Last in the text, where there is one. */
const MAP = /\n\/\/# sourceMappingURL=.*\n?$/

/**
 * Gives a CommonJS module of esbuild plain properties as its exports, once it has run: a name that is imported is a load then, and not
 * two calls and a look-up by name, at each use. What may change, and what belongs to another module, is still read where it stands;
 * so is everything for those that import the module while it runs.
 */
exports.plainExports = (code) => {
  const list = EXPORTS.exec(code)
  if (list === null || code.includes('__reExport(')) return code
  const properties = []
  for (const line of list[1].trimEnd().split('\n')) {
    const [, name, value] = EXPORT.exec(line) ?? []
    if (name === undefined) return code
    properties.push(isFixed(code, value) ? `${name}: ${value}` : `get ${name}() { return ${value} }`)
  }
  const settled = `\nmodule.exports = Object.defineProperty({ ${properties.join(', ')} }, "__esModule", { value: true });`
  const map = MAP.exec(code)
  return map === null ? code + settled : code.slice(0, map.index) + settled + code.slice(map.index)
}

/** True for a name of the module's own that means the same for ever. */
const isFixed = (code, name) =>
  /^[\w$]+$/.test(name) &&
  new RegExp(`^(?:const|class|(?:async )?function\\*?) ${name.replaceAll('$', '\\$')}\\b`, 'm').test(code)
