const { readFileSync } = require('node:fs')
const { SourceMap } = require('node:module')
const { isOurs } = require('./script.cjs')
const { strip } = require('./strip.cjs')

const MARK = '//# sourceMappingURL=data:application/json;base64,'
/** Line and column at the end of a frame's text, and what may stand behind them. */
const POSITION = /:(\d+):(\d+)(\)?)$/
const texts = new Map()
const maps = new Map()

/**
 * Names lines of the TypeScript files in the stacks of errors. Node can do so, but decodes the map of every module when it is loaded: a
 * sixth of the start of a service. Here the map of a module is decoded when a stack names it.
 */
exports.nameLines = () => {
  Error.prepareStackTrace = (error, frames) => {
    let head
    try {
      head = Error.prototype.toString.call(error)
    } catch {
      head = '<error>'
    }
    return frames.length === 0 ? head : `${head}\n    at ${frames.map(textOf).join('\n    at ')}`
  }
}

/** @param {string} text the module as it is run, with its map at the end */
exports.add = (path, text) => void texts.set(path, text)

function textOf(frame) {
  const text = String(frame)
  const map = mapOf(frame.getFileName())
  if (map === undefined) return text
  return text.replace(POSITION, (position, line, column, end) => {
    const { originalLine, originalColumn } = map.findEntry(line - 1, column - 1)
    return originalLine === undefined ? position : `:${originalLine + 1}:${originalColumn + 1}${end}`
  })
}

function mapOf(path) {
  const known = maps.get(path)
  if (known !== undefined) return known
  const text = texts.get(path) ?? textOfOurs(path)
  const at = text?.lastIndexOf(MARK) ?? -1
  if (at < 0) return undefined
  const map = new SourceMap(JSON.parse(Buffer.from(text.slice(at + MARK.length), 'base64').toString()))
  maps.set(path, map)
  return map
}

/** A kept module is not read again when it is loaded. */
function textOfOurs(path) {
  return path?.endsWith('.ts') && isOurs(path) ? strip(path, readFileSync(path, 'utf8')) : undefined
}
