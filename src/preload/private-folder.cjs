const { chmodSync, lstatSync, mkdirSync } = require('node:fs')
const { dirname } = require('node:path')

const WRITABLE_BY_OTHERS = 0o022
const STICKY = 0o1000

/**
 * Makes a folder for code that is kept, and tells why it must not be executed from there: another user of the machine who makes the folder first, or
 * may write to it, would have code executed.
 * @returns {string | null} null: nobody else can write there. Without user ids (Windows) the folder is taken for the user's own
 */
exports.faultOf = (folder) => {
  try {
    return fault(folder, process.geteuid?.())
  } catch (error) {
    return error.message
  }
}

function fault(folder, userId) {
  if (userId === undefined) {
    mkdirSync(folder, { recursive: true })
    return null
  }
  // Somebody who may rename entries of the folder above could put another one in its place.
  const above = lstatSync(dirname(folder))
  const isShared = (above.mode & WRITABLE_BY_OTHERS) !== 0 && (above.mode & STICKY) === 0
  if (isShared) return `${dirname(folder)} is writable by others, and not sticky`
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if (error.code !== 'EEXIST') return error.message
  }
  const found = lstatSync(folder)
  if (!found.isDirectory()) return `${folder} is not a folder`
  if (found.uid !== userId) return `${folder} belongs to the user ${found.uid}`
  if ((found.mode & WRITABLE_BY_OTHERS) !== 0) return `others may write to ${folder}: remove it`
  if ((found.mode & 0o777) !== 0o700) chmodSync(folder, 0o700)
  return null
}
