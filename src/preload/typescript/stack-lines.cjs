// Lines of TypeScript files in the stacks of errors.
const { readFileSync } = require('node:fs')
const { Module, SourceMap } = require('node:module')
const { dirname, join, relative, resolve } = require('node:path')
const { fileURLToPath } = require('node:url')
const { brotliDecompressSync } = require('node:zlib')
const { isRuntime, SOURCE } = require('../kept-folder.cjs')
const { strip, transform } = require('./strip.cjs')

const MARK = '//# sourceMappingURL='
const INLINE = 'data:application/json;base64,'
/** Line and column at the end of a frame's text, and what may stand behind them. */
const POSITION = /:(\d+):(\d+)(\)?)$/
/** Modules of the package; what they are made of is TypeScript. */
const COMPILED = '.js'
const TYPESCRIPT = /\.[cm]?ts$/
/** Where the map of a module is, as its text says. */
const urls = new Map()
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
  const compile = Module.prototype._compile
  Module.prototype._compile = function (text, path, format) {
    // The text may be another one by the time that a stack names the module.
    if (!path.endsWith(COMPILED)) urls.set(path, mapUrl(text))
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

const mapUrl = (text) => {
  const at = text.lastIndexOf(MARK)
  return at < 0 ? '' : text.slice(at + MARK.length).trimEnd()
}

function readMap(path) {
  try {
    if (path.endsWith(COMPILED)) return isRuntime(path) ? packedMap(path) : null
    if (!urls.has(path) && !TYPESCRIPT.test(path)) return null
    return new SourceMap(JSON.parse(mapText(path)))
  } catch {
    // Gone, or no map.
    return null
  }
}

function mapText(path) {
  const source = TYPESCRIPT.test(path) ? readFileSync(path, 'utf8') : ''
  // A packed module has not come by.
  const url = urls.get(path) ?? mapUrl(strip(path, source))
  if (url.startsWith(INLINE)) return Buffer.from(url.slice(INLINE.length), 'base64').toString()
  try {
    return readFileSync(fileURLToPath(url), 'utf8')
  } catch {
    // Somebody has removed what is kept.
    return transform(path, source).map
  }
}
