const { createHash } = require('node:crypto')
const { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } = require('node:fs')
const { Module } = require('node:module')
const { join } = require('node:path')
const { cachedDataVersionTag } = require('node:v8')
const { constants, Script } = require('node:vm')
const { threadId } = require('node:worker_threads')

const ROOT = join(__dirname, '../../../')
const FOLDER = join(ROOT, 'node_modules/.cache/heddle-tests/modules/')
/** What V8 makes of a text depends on it; the flags of the process belong to it. */
const ENGINE = `${process.version} ${process.arch} ${cachedDataVersionTag()}`
const [HEAD, END] = Module.wrapper
/** Behind it lie the bytes of a text whose characters take one each: they need not be decoded. */
const ONE_BYTE = 1
const HEADER_BYTES = 16
/** By then a service has started, and the functions that a start needs are compiled. */
const STARTED_MS = 2000

mkdirSync(FOLDER, { recursive: true })
/** Scripts that V8 had to compile in this thread. */
let compiled = []

/**
 * What is run for a module of the project or its packages, as an earlier thread has kept it: text and compiled code in one file, which
 * holds while the module's own file has not changed. So a start neither reads nor strips nor compiles the modules: it was half of it.
 * @returns null where nothing is kept, or another text
 */
exports.keptModule = (path) => {
  const stamp = stampOf(path)
  const kept = stamp === null ? null : read(fileOf(path))
  if (kept === null || kept.latin1Slice(HEADER_BYTES, HEADER_BYTES + kept.readUInt32LE(0)) !== stamp) return null
  const textAt = HEADER_BYTES + kept.readUInt32LE(0)
  const codeAt = textAt + kept.readUInt32LE(4)
  const text = kept.readUInt32LE(8) === ONE_BYTE ? kept.latin1Slice(textAt, codeAt) : kept.utf8Slice(textAt, codeAt)
  return compile(path, text, kept.subarray(codeAt))
}

/**
 * Compiles a module, and keeps it.
 * @param {string} body without what makes a function of it
 * @returns {Script | null} null for what is no CommonJS: Node tells which it is
 */
exports.keepModule = (path, body) => {
  const stamp = stampOf(path)
  const text = HEAD + body + END
  let script
  try {
    script = compile(path, text)
  } catch {
    return null
  }
  if (stamp !== null) {
    compiled.push({ path, stamp, text, script })
    // Once more: then it has the functions that are called later.
    if (compiled.length === 1) {
      setTimeout(keepStarted, STARTED_MS).unref()
      process.once('exit', keepStarted)
    }
  }
  return script
}

/** For a module that has run: its code has the functions that it has called. */
exports.keepRun = (path, script) => {
  const own = compiled.findLast((each) => each.path === path && each.script === script)
  if (own !== undefined) write(own)
}

exports.isOurs = (path) => path.startsWith(ROOT)

function keepStarted() {
  process.off('exit', keepStarted)
  for (const each of compiled) write(each)
  compiled = []
}

function compile(path, text, cachedData) {
  return new Script(text, {
    filename: path,
    // The first line is where the module's own begins.
    columnOffset: -HEAD.length,
    cachedData,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
}

function fileOf(path) {
  return FOLDER + createHash('sha1').update(`${ENGINE}\n${path}`).digest('hex')
}

/** Null for what is no file. */
function stampOf(path) {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? null : `${stat.mtimeMs} ${stat.ctimeMs} ${stat.size}`
}

function read(file) {
  try {
    return readFileSync(file)
  } catch {
    // Not kept yet.
    return null
  }
}

/** Whole or not at all: another process may read it meanwhile. */
function write({ path, stamp, text, script }) {
  const isOneByte = /^[\0-\x7f]*$/.test(text)
  const [stampBytes, textBytes] = [Buffer.from(stamp), Buffer.from(text)]
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32LE(stampBytes.length, 0)
  header.writeUInt32LE(textBytes.length, 4)
  header.writeUInt32LE(isOneByte ? ONE_BYTE : 0, 8)
  const file = fileOf(path)
  const fresh = `${file}.${process.pid}.${threadId}`
  writeFileSync(fresh, Buffer.concat([header, stampBytes, textBytes, script.createCachedData()]))
  renameSync(fresh, file)
}
