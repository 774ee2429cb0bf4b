const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { faultOf } = require('./private-folder.cjs')

/**
 * Lets tsx keep compiled sources only where nobody else can write. It executes what lies in `tsx-<user id>` of the system's temporary folder,
 * and does not look at whose that is.
 */
function guardCache() {
  const userId = process.geteuid?.()
  // Without user ids (Windows) the temporary folder is the user's own.
  if (userId === undefined || process.env.TSX_DISABLE_CACHE) return
  const fault = faultOf(join(tmpdir(), `tsx-${userId}`))
  if (fault === null) return
  process.env.TSX_DISABLE_CACHE = '1'
  process.emitWarning(`Compiled sources are not kept, so that starts are slower: ${fault}`, 'TranspilerCacheWarning')
}

// Lanes inherit the environment. A read-only image has no need of the cache either.
if (require('node:worker_threads').isMainThread) guardCache()
