const { compile, wrap } = require('./script.cjs')

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
