const { readFileSync } = require('node:fs')
const { Module, SourceMap } = require('node:module')
const { dirname, join, relative, resolve } = require('node:path')
const { brotliDecompressSync } = require('node:zlib')
const { isOurs, isRuntime, SOURCE } = require('./places.cjs')
const { strip } = require('./strip.cjs')

const MARK = '//# sourceMappingURL=data:application/json;base64,'
/** Line and column at the end of a frame's text, and what may stand behind them. */
const POSITION = /:(\d+):(\d+)(\)?)$/
/** Modules of the package; what they are made of is TypeScript. */
const COMPILED = '.js'
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

/** Remembers modules that an application may have changed by the time that a stack names them. */
exports.addCompiled = () => {
  const compile = Module.prototype._compile
  Module.prototype._compile = function (text, path, format) {
    if (!isOurs(path) && text.includes(MARK)) texts.set(path, text)
    return compile.call(this, text, path, format)
  }
}

function textOf(frame) {
  const text = String(frame)
  const path = frame.getFileName()
  const map = mapOf(path)
  if (map === null) return text
  const [found, line, column, end] = POSITION.exec(text) ?? []
  if (found === undefined) return text
  const { originalSource, originalLine, originalColumn } = map.findEntry(line - 1, column - 1)
  if (originalLine === undefined) return text
  const named = text.slice(0, -found.length)
  // A compiled module names its source, which lies elsewhere.
  const source = path.endsWith(COMPILED) ? named.replace(path, resolve(dirname(path), originalSource)) : named
  return `${source}:${originalLine + 1}:${originalColumn + 1}${end}`
}

function mapOf(path) {
  if (typeof path !== 'string') return null
  const known = maps.get(path)
  if (known !== undefined) return known
  const map = readMap(path)
  maps.set(path, map)
  return map
}

/** Of the package, whose maps are the lines of one file. */
function packedMap(path) {
  const folder = join(SOURCE, '..')
  const all = brotliDecompressSync(readFileSync(join(folder, 'source-maps.jsonl.br')))
  const at = all.indexOf(`["${relative(folder, path).replaceAll('\\', '/')}",`)
  return at < 0 ? null : new SourceMap(JSON.parse(all.toString('utf8', at, all.indexOf('\n', at)))[1])
}

function readMap(path) {
  try {
    if (path.endsWith(COMPILED)) return isRuntime(path) ? packedMap(path) : null
    // A kept module is not read again when it is loaded.
    const text =
      texts.get(path) ?? (path.endsWith('.ts') && isOurs(path) ? strip(path, readFileSync(path, 'utf8')) : '')
    const at = text.lastIndexOf(MARK)
    return at < 0 ? null : new SourceMap(JSON.parse(Buffer.from(text.slice(at + MARK.length), 'base64').toString()))
  } catch {
    // Gone, or no map.
    return null
  }
}
