// Where stripped texts and compiled code are kept, so that nobody else can put code there, and for which files.
const { chmodSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { dirname, join } = require('node:path')
const { getEnvironmentData, setEnvironmentData, threadId } = require('node:worker_threads')
const { isCompiled } = require('./launch.cjs')

/** `src/`, or what is made of it. */
const SOURCE = join(__dirname, '../')
/** The repository, or the package. */
const ROOT = join(SOURCE, isCompiled ? '../..' : '..', '/')
const INSTALLED = '/node_modules/'
const at = ROOT.indexOf(INSTALLED)
/** Where the packages are that the runtime has. */
const PACKAGES = at < 0 ? join(ROOT, INSTALLED) : ROOT.slice(0, at + INSTALLED.length)
/** Under which a thread finds the folder: its environment may name another place for temporary files. */
const FOLDER = 'heddle: folder of kept code'
/** What a repository and its tests keep is 60 MB. */
const KEPT_BYTES = 256 * 2 ** 20
const WRITABLE_BY_OTHERS = 0o022
const STICKY = 0o1000

exports.ROOT = ROOT
exports.PACKAGES = PACKAGES
exports.SOURCE = SOURCE

/** The runtime and the packages: what changes only when somebody installs or edits it. */
exports.isOurs = (path) => path.startsWith(ROOT) || path.startsWith(PACKAGES)

/** A module of the runtime, and none of its packages. */
exports.isRuntime = (path) => path.startsWith(SOURCE) || path.startsWith(join(SOURCE, '../workers/'))

/** A file of an application: nobody but tsx knows everything that may be in it. */
exports.isApplication = (path) =>
  !path.includes(INSTALLED) && !path.startsWith(SOURCE) && !(isCompiled && path.startsWith(ROOT))

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

/**
 * The folder for stripped and compiled code, which no other user may write to: among the packages, whose owner may change the code anyway, or else in
 * the system's folder for temporary files. Null where there is none: nothing is kept.
 */
exports.keptFolder = keptFolder()

function keptFolder() {
  const known = getEnvironmentData(FOLDER)
  if (known !== undefined) return known
  const found = findFolder()
  setEnvironmentData(FOLDER, found)
  return found
}

function findFolder() {
  const cache = join(PACKAGES, '.cache')
  try {
    mkdirSync(cache, { recursive: true })
  } catch {
    // Read-only: an image, or another user's.
  }
  if (exports.faultOf(join(cache, 'heddle-code')) === null) return made(join(cache, 'heddle-code/'))
  const folder = join(tmpdir(), `heddle-code-${process.geteuid?.() ?? ''}/`)
  const found = exports.faultOf(folder.slice(0, -1))
  if (found === null) return made(folder)
  process.emitWarning(`Compiled code is not kept, so that starts are slower: ${found}`, 'TranspilerCacheWarning')
  return null
}

function made(folder) {
  for (const name of ['stripped', 'written', 'packs', 'compiled']) mkdirSync(join(folder, name), { recursive: true })
  return folder
}

/** Whole or not at all: another process may read it meanwhile. @returns {boolean} false where there is no room for it */
exports.writeWhole = (file, text) => {
  const fresh = `${file}.${process.pid}.${threadId}`
  try {
    writeFileSync(fresh, text, { mode: 0o600 })
    renameSync(fresh, file)
    return true
  } catch {
    rmSync(fresh, { force: true })
    return false
  }
}

/** Removes what was written longest ago when too much is kept: of copies that are gone, of versions before this one. */
exports.trim = () => {
  const files = readdirSync(exports.keptFolder, { recursive: true }).map((name) => {
    const path = join(exports.keptFolder, name)
    const stat = statSync(path, { throwIfNoEntry: false })
    return { path, mtimeMs: stat?.mtimeMs ?? 0, size: stat?.isFile() ? stat.size : 0 }
  })
  let bytes = 0
  for (const { path, size } of files.sort((one, other) => other.mtimeMs - one.mtimeMs)) {
    bytes += size
    if (bytes > KEPT_BYTES && size > 0) rmSync(path, { force: true })
  }
}
