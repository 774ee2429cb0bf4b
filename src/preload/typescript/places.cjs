const { createHash } = require('node:crypto')
const { mkdirSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { getEnvironmentData, setEnvironmentData } = require('node:worker_threads')
const { isCompiled } = require('../compiled.cjs')
const { faultOf } = require('../private-folder.cjs')

/** `src/`, or what is made of it. */
const SOURCE = join(__dirname, '../../')
/** The repository, or the package. */
const ROOT = join(SOURCE, isCompiled ? '../..' : '..', '/')
const INSTALLED = '/node_modules/'
const at = ROOT.indexOf(INSTALLED)
/** Where the packages are that the runtime has. */
const PACKAGES = at < 0 ? join(ROOT, INSTALLED) : ROOT.slice(0, at + INSTALLED.length)
/** Under which a thread finds the folder: its environment may name another place for temporary files. */
const FOLDER = 'heddle: folder of kept code'

exports.ROOT = ROOT
exports.SOURCE = SOURCE
exports.PACKAGES = PACKAGES

/** The runtime and the packages: what changes only when somebody installs or edits it. */
exports.isOurs = (path) => path.startsWith(ROOT) || path.startsWith(PACKAGES)

/** A module of the runtime, and none of its packages. */
exports.isRuntime = (path) => path.startsWith(SOURCE) || path.startsWith(join(SOURCE, '../workers/'))

/** A file of an application: nobody but tsx knows everything that may be in it. */
exports.isApplication = (path) =>
  !path.includes(INSTALLED) && !path.startsWith(SOURCE) && !(isCompiled && path.startsWith(ROOT))

/**
 * The folder for stripped and compiled code, which no other user may write to: among the packages, whose owner may change the code anyway, or else in
 * the system's folder for temporary files. Null where there is none: nothing is kept.
 */
exports.keptFolder = keptFolder()

/** @param key what it depends on beside the files that it is made of */
exports.keptModuleFile = (key) => join(exports.keptFolder, 'modules', createHash('sha1').update(key).digest('hex'))

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
  if (faultOf(join(cache, 'heddle-code')) === null) return made(join(cache, 'heddle-code/'))
  const folder = join(tmpdir(), `heddle-code-${process.geteuid?.() ?? ''}/`)
  const fault = faultOf(folder.slice(0, -1))
  if (fault === null) return made(folder)
  process.emitWarning(`Compiled code is not kept, so that starts are slower: ${fault}`, 'TranspilerCacheWarning')
  return null
}

function made(folder) {
  for (const name of ['maps', 'modules', 'written']) mkdirSync(join(folder, name), { recursive: true })
  return folder
}
