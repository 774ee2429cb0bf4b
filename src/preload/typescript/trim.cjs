const { readdirSync, rmSync, statSync } = require('node:fs')
const { join } = require('node:path')

/** Of each folder. What a repository and its tests keep is 60 MB. */
const KEPT_BYTES = 256 * 2 ** 20

/** Removes what was written longest ago from a folder that has grown too large: of copies that are gone, of versions before this one. */
exports.trim = (folder) => {
  try {
    trimTo(folder, KEPT_BYTES)
  } catch {
    // Somebody has removed the folder: there is nothing to remove.
  }
}

function trimTo(folder, keptBytes) {
  const files = readdirSync(folder).map((name) => {
    const path = join(folder, name)
    const { mtimeMs = 0, size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
    return { path, mtimeMs, size }
  })
  let bytes = 0
  for (const { path, size } of files.sort((one, other) => other.mtimeMs - one.mtimeMs)) {
    bytes += size
    if (bytes > keptBytes) rmSync(path, { force: true })
  }
}
