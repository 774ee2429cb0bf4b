// What becomes of the text of a module before it is kept: its map stands in a file of its own, its comments take one byte a character, and zod loads a
// language when it is asked for.
const { createHash } = require('node:crypto')
const { existsSync } = require('node:fs')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { keptFolder } = require('./places.cjs')
const { compile, wrap, writeWhole } = require('./script.cjs')

const NAME = '//# sourceMappingURL='
const INLINE = `${NAME}data:application/json;base64,`

/**
 * Puts the source map at the end of a module into a file of its own, which the text then names: V8 holds the text of a module in each of its threads, and a
 * third of it was a map that nobody reads, except a debugger and who asks where a thread stands still. The file is that of this very text: the
 * source may change while the module runs.
 * @returns {string} the text; unchanged where it has no such map, or the map cannot be kept
 */
exports.mapAside = (path, text) => {
  const at = text.lastIndexOf(INLINE)
  if (at < 0 || keptFolder === null) return text
  const file = join(keptFolder, 'maps', `${createHash('sha1').update(`${path}\n${text}`).digest('hex')}.map`)
  if (!existsSync(file)) {
    const map = JSON.parse(Buffer.from(text.slice(at + INLINE.length), 'base64').toString())
    // It does not lie beside its source.
    const placed = { ...map, sources: [pathToFileURL(path).href] }
    if (!writeWhole(file, [Buffer.from(JSON.stringify(placed))])) return text
  }
  return `${text.slice(0, at)}${NAME}${pathToFileURL(file).href}\n`
}

/** V8 gives two bytes to each character of a text that has one of these. */
const WIDE = /[^\0-\xff]/g
/** Harmless in a comment. A fault of syntax in code, and in a string, a template or a regular expression, each of which it closes first. */
const PROBE = '(]\'(]"(]`(]]/(]'

/**
 * Halves the memory that the text of a module takes where only its comments have such characters, an arrow or a dash: they become question marks, and
 * every place stays what it is. V8 tells whether all of them are in comments.
 */
exports.oneByte = (path, body) => {
  if (body.search(WIDE) < 0) return body
  try {
    compile(path, wrap(body.replace(WIDE, `${PROBE}$&`)))
  } catch {
    // One is in the code.
    return body
  }
  return body.replace(WIDE, '?')
}

const LIST = '/zod/v4/locales/index.cjs'
/** One of the languages in zod's list of them. */
const LANGUAGE =
  /^var (\w+) = require\(("[^"]+")\);\nObject\.defineProperty\(exports, ("\w+"), \{ enumerable: true, get: function \(\) \{ return __importDefault\(\1\)\.default; \} \}\);$/gm
/** The end of the list, which reads each of them, and freezes what it has read. */
const SEAL = /^\/\/ seal-cjs-exports\n[\s\S]*$/m

/**
 * Lets zod load a language when it is asked for. It loads all of them at its start, some fifty files and a megabyte of each thread, of which a service needs
 * one, if any. What a language is, and that the list cannot be changed, stays as it is.
 */
exports.languagesOnDemand = (path, body) =>
  path.endsWith(LIST)
    ? body
        .replace(
          LANGUAGE,
          '\nObject.defineProperty(exports, $3, { enumerable: true, get: function () { return __importDefault(require($2)).default; } });',
        )
        .replace(SEAL, 'Object.freeze(exports);\n')
    : body
