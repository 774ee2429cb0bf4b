// Makes folders, where Node's own way may never return.
const { mkdirSync, statSync } = require('node:fs')
const { dirname } = require('node:path')

/** Makes a folder, and those above it that are missing. With `recursive`, Node tries for ever below `/proc`. */
exports.makeFolder = function makeFolder(path, mode) {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
  const above = dirname(path)
  if (above !== path) makeFolder(above, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    // Somebody has made it meanwhile.
    if (error.code !== 'EEXIST' || !statSync(path).isDirectory()) throw error
  }
}
