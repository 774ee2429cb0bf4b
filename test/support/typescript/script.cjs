const { mkdirSync, renameSync, writeFileSync } = require('node:fs')
const { Module } = require('node:module')
const { join } = require('node:path')
const { cachedDataVersionTag } = require('node:v8')
const { constants, Script } = require('node:vm')
const { threadId } = require('node:worker_threads')

const ROOT = join(__dirname, '../../../')
const FOLDER = join(ROOT, 'node_modules/.cache/heddle-tests/modules/')
const [HEAD, END] = Module.wrapper

mkdirSync(FOLDER, { recursive: true })

exports.ROOT = ROOT
/** Where modules are kept. */
exports.FOLDER = FOLDER
/** What V8 makes of a text depends on it; the flags of the process belong to it. */
exports.ENGINE = `${process.version} ${process.arch} ${cachedDataVersionTag()}`
/** By then a service has started, and the functions that a start needs are compiled. */
exports.STARTED_MS = 2000

exports.isOurs = (path) => path.startsWith(ROOT)

/** The text of a module as a function. */
exports.wrap = (body) => HEAD + body + END

/** A text whose characters take one byte each need not be decoded. */
exports.isOneByte = (text) => /^[\0-\x7f]*$/.test(text)

exports.compile = (path, text, cachedData) =>
  new Script(text, {
    filename: path,
    // The first line is where the module's own begins.
    columnOffset: -HEAD.length,
    cachedData,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })

/** Whole or not at all: another process may read it meanwhile. */
exports.writeWhole = (file, parts) => {
  const fresh = `${file}.${process.pid}.${threadId}`
  writeFileSync(fresh, Buffer.concat(parts))
  renameSync(fresh, file)
}
