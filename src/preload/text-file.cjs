// The one reader of text files that people write: UTF-8, or refused with the line.
const { isUtf8 } = require('node:buffer')
const { readFileSync } = require('node:fs')
const { relative } = require('node:path')

/** A file that is not text in UTF-8: read otherwise, its characters would be others than those in the editor. */
class TextFault extends Error {
  /** @param {string} path @param {number} line from 1 @param {string} why */
  constructor(path, line, why) {
    super(`${shown(path)}:${line}: ${why}`)
    this.name = 'TextFault'
    this.path = path
    this.line = line
    this.why = why
  }
}

/** The text of a file without its byte order mark. @throws TextFault */
function textOf(/** @type {Buffer} */ bytes, /** @type {string} */ path) {
  const fault = faultIn(bytes)
  if (fault !== null) throw new TextFault(path, ...fault)
  return withoutMark(bytes.toString('utf8'))
}

const withoutMark = (text) => (text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)

/**
 * Reads code as `textOf` does. For text Node opens a file by itself, for bytes by `openSync`: in a lane that counts, and refuses, what plugins open,
 * and a lane has to load them also when few descriptors are left. @throws TextFault
 */
function readCode(/** @type {string} */ path) {
  const text = readFileSync(path, 'utf8')
  // So Node shows what is not UTF-8.
  return text.includes('\ufffd') ? textOf(readFileSync(path), path) : withoutMark(text)
}

/** Reads a text that is no code. @throws TextFault, also for a NUL, at which databases and the environment end a text */
function readText(/** @type {string} */ path) {
  const text = textOf(readFileSync(path), path)
  const at = text.indexOf('\0')
  if (at < 0) return text
  throw new TextFault(path, lineAt(text, at), `a NUL, which no text has. ${SAVE}`)
}

const SAVE = 'Save the file as UTF-8.'

function faultIn(bytes) {
  const [first, second] = bytes
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return [1, `this is UTF-16. ${SAVE}`]
  if (isUtf8(bytes)) return null
  let line = 1
  let from = 0
  for (;;) {
    // No character in UTF-8 has the byte of a line end in it.
    const end = bytes.indexOf(0x0a, from)
    const text = bytes.subarray(from, end < 0 ? bytes.length : end)
    if (!isUtf8(text)) return [line, faultOfLine(text)]
    line++
    from = end + 1
  }
}

function faultOfLine(text) {
  let at = 0
  while (true) {
    const length = [1, 2, 3, 4].find((each) => isUtf8(text.subarray(at, at + each)))
    if (length === undefined) break
    at += length
  }
  const byte = text[at].toString(16).toUpperCase().padStart(2, '0')
  const letter = text[at] < 0xa0 ? '' : ` (${String.fromCharCode(text[at])} in Latin-1)`
  return `the byte 0x${byte}${letter} in column ${text.subarray(0, at).toString().length + 1} is not UTF-8. ${SAVE}`
}

const lineAt = (text, at) => text.slice(0, at).split('\n').length

function shown(path) {
  const near = relative(process.cwd(), path)
  return near === '' || near.startsWith('..') ? path : near
}

exports.TextFault = TextFault
exports.readCode = readCode
exports.readText = readText
exports.textOf = textOf
