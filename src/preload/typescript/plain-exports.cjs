// Exports as plain properties.
/** What esbuild writes for the names that a module exports: a function for each, and an object with them for those that import the module while it runs. */
const EXPORTS = /^var (\w+) = \{\};\n__export\(\1, \{\n((?: {2}.+\n)+)\}\);\nmodule\.exports = __toCommonJS\(\1\);$/m
const EXPORT = /^ {2}("[^"]+"|[\w$]+): \(\) => (.+?),?$/
/** A function that esbuild writes at the beginning of each module that may need it. */
const HELPER = /^var (__\w+) = [\s\S]*?;$(?=\n(?:var |const ))/gm

/**
 * Gives a CommonJS module of esbuild plain properties as its exports, once it has run: a name that is imported is a load then, and not
 * two calls and a look-up by name, at each use. What may change, and what belongs to another module, is still read where it stands;
 * so is everything for those that import the module while it runs. No line of the module moves.
 */
exports.plainExports = (code) => {
  const list = EXPORTS.exec(code)
  if (list === null || code.includes('__reExport(')) return code
  const [found, , lines] = list
  const early = []
  const settled = []
  for (const line of lines.trimEnd().split('\n')) {
    const [, name, value] = EXPORT.exec(line) ?? []
    if (name === undefined) return code
    const read = `get ${name}() { return ${value} }`
    early.push(read)
    settled.push(isFixed(code, value) ? `${name}: ${value}` : read)
  }
  const behind = code.slice(list.index + found.length)
  const before = needed(`${code.slice(0, list.index)}var `, behind).slice(0, -'var '.length)
  return `${before}${exported(early)}${blank(found)}${behind}\n${exported(settled)}`
}

const exported = (properties) =>
  `module.exports = Object.defineProperty({ ${properties.join(', ')} }, "__esModule", { value: true });`

/** Without the helpers that nothing uses any more: each module would have its own, in every thread. */
function needed(helpers, behind) {
  const all = [...helpers.matchAll(HELPER)]
  const unused = new Set()
  let users = behind
  for (const [text, name] of all.reverse()) {
    if (users.includes(name)) users += text
    else unused.add(name)
  }
  return helpers.replace(HELPER, (text, name) => (unused.has(name) ? blank(text) : text))
}

/** As many lines. */
const blank = (text) => text.replace(/[^\n]+/g, '')

/** True for a name of the module's own that means the same for ever. */
const isFixed = (code, name) =>
  /^[\w$]+$/.test(name) &&
  new RegExp(`^(?:const|class|(?:async )?function\\*?) ${name.replaceAll('$', '\\$')}\\b`, 'm').test(code)
