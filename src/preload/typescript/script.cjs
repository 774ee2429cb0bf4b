const { closeSync, fsyncSync, openSync, renameSync, rmSync, writevSync } = require('node:fs')
const { Module } = require('node:module')
const { cachedDataVersionTag } = require('node:v8')
const { constants, Script } = require('node:vm')
const { threadId } = require('node:worker_threads')

const [HEAD, END] = Module.wrapper

/** What V8 makes of a text depends on it; the flags of the process belong to it. At the end, what the loader makes of a text: count it up when that changes. */
exports.ENGINE = `${process.version} ${process.arch} ${cachedDataVersionTag()} form 2`
/** By then a service has started, and the functions that a start needs are compiled. */
exports.STARTED_MS = 2000
/** A file that was changed less than this ago may change again without a sign. */
const SETTLED_MS = 1000

/** The text of a module as a function. */
exports.wrap = (body) => HEAD + body + END

/** A text whose characters take one byte each need not be decoded. */
exports.isOneByte = (text) => /^[\0-\x7f]*$/.test(text)

/** @param stat of a file that was read before */
exports.isSettled = ({ mtimeMs, ctimeMs }) => Date.now() - Math.max(mtimeMs, ctimeMs) > SETTLED_MS

exports.compile = (path, text, cachedData) =>
  new Script(text, {
    filename: path,
    // The first line is where the module's own begins.
    columnOffset: -HEAD.length,
    cachedData,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })

/**
 * Whole or not at all: another process may read it meanwhile. Without room for it, it is not kept.
 * @param isSynced also when power fails
 * @returns {boolean} true when it is there
 */
exports.writeWhole = (file, parts, isSynced = false) => {
  const fresh = `${file}.${process.pid}.${threadId}`
  try {
    const fd = openSync(fresh, 'w', 0o600)
    try {
      let bytes = Buffer.concat(parts)
      while (bytes.length > 0) bytes = bytes.subarray(writevSync(fd, [bytes]))
      if (isSynced) fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(fresh, file)
    return true
  } catch {
    rmSync(fresh, { force: true })
    return false
  }
}
