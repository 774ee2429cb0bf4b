const { createHash } = require('node:crypto')
const { existsSync } = require('node:fs')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { keptFolder } = require('./places.cjs')
const { writeWhole } = require('./script.cjs')

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
