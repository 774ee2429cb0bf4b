const { readFileSync, statSync } = require('node:fs')
const { languagesOnDemand, mapAside, oneByte } = require('./kept-text.cjs')
const { keptModuleFile } = require('./places.cjs')
const { compile, ENGINE, isOneByte, isSettled, STARTED_MS, wrap, writeWhole } = require('./script.cjs')

/** Of the text: see `isOneByte`. */
const ONE_BYTE = 1
const HEADER_BYTES = 16

/** Scripts that V8 had to compile in this thread. */
let compiled = []

/**
 * What is run for a module of the project or its packages, as an earlier thread has kept it: text and compiled code in one file, which
 * holds while the module's own file has not changed. So a start neither reads nor strips nor compiles the modules: it was half of it.
 * @returns {{ text: string, script: import('node:vm').Script } | null} null where nothing is kept, or another text
 */
exports.keptModule = (path) => {
  const stamp = stampOf(path)
  const kept = stamp === null ? null : read(fileOf(path))
  if (kept === null || kept.latin1Slice(HEADER_BYTES, HEADER_BYTES + kept.readUInt32LE(0)) !== stamp) return null
  const textAt = HEADER_BYTES + kept.readUInt32LE(0)
  const codeAt = textAt + kept.readUInt32LE(4)
  const text = kept.readUInt32LE(8) === ONE_BYTE ? kept.latin1Slice(textAt, codeAt) : kept.utf8Slice(textAt, codeAt)
  try {
    return { text, script: compile(path, text, kept.subarray(codeAt)) }
  } catch {
    // Damaged.
    return null
  }
}

/**
 * Compiles a module, and keeps it.
 * @param {string} body without what makes a function of it
 * @returns {{ text: string, script: import('node:vm').Script } | null} null for what is no CommonJS: Node tells which it is
 */
exports.keepModule = (path, body) => {
  const stamp = stampOf(path)
  const text = wrap(oneByte(path, mapAside(path, languagesOnDemand(path, body))))
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
  return { text, script }
}

/** For a module that has run: its code has the functions that it has called. */
exports.keepRun = (path, script) => {
  const own = compiled.findLast((each) => each.path === path && each.script === script)
  if (own !== undefined) write(own)
}

function keepStarted() {
  process.off('exit', keepStarted)
  for (const each of compiled) write(each)
  compiled = []
}

const fileOf = (path) => keptModuleFile(`${ENGINE}\n${path}`)

/** Null for what is no file, or has just been changed. */
function stampOf(path) {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined || !isSettled(stat) ? null : `${stat.mtimeMs} ${stat.ctimeMs} ${stat.size}`
}

function read(file) {
  try {
    return readFileSync(file)
  } catch {
    // Not kept yet.
    return null
  }
}

function write({ path, stamp, text, script }) {
  const [stampBytes, textBytes] = [Buffer.from(stamp), Buffer.from(text)]
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32LE(stampBytes.length, 0)
  header.writeUInt32LE(textBytes.length, 4)
  header.writeUInt32LE(isOneByte(text) ? ONE_BYTE : 0, 8)
  writeWhole(fileOf(path), [header, stampBytes, textBytes, script.createCachedData()])
}
