const { chmodSync, lstatSync, mkdirSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { dirname, join } = require('node:path')

const WRITABLE_BY_OTHERS = 0o022
const STICKY = 0o1000

/**
 * Lets tsx keep compiled sources only where nobody else can write. It executes what lies in `tsx-<user id>` of the system's temporary folder,
 * and does not look at whose that is: another user of the machine who makes the folder first would have code executed.
 */
function cacheFault(folder, userId) {
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
  chmodSync(folder, 0o700)
  return null
}

function guardCache() {
  const userId = process.geteuid?.()
  // Without user ids (Windows) the temporary folder is the user's own.
  if (userId === undefined || process.env.TSX_DISABLE_CACHE) return
  let fault
  try {
    fault = cacheFault(join(tmpdir(), `tsx-${userId}`), userId)
  } catch (error) {
    fault = error.message
  }
  if (fault === null) return
  process.env.TSX_DISABLE_CACHE = '1'
  process.emitWarning(`Compiled sources are not kept, so that starts are slower: ${fault}`, 'TranspilerCacheWarning')
}

// Lanes inherit the environment. A read-only image has no need of the cache either.
if (require('node:worker_threads').isMainThread) guardCache()
