const { accessSync, constants, copyFileSync, mkdtempSync, readdirSync, readlinkSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')

/** Where files are memory, on Linux. */
const MEMORY_DIR = '/dev/shm'
/** Containers may share the folder, and number their processes each by itself: a guardian knows only those of its own. */
const PREFIX = `heddle-flight-${processNamespace()}-`

/** The folder in memory in which the runtime keeps its flight record: what is in flight, for the case that the process is gone at once. Nobody else may read it. */
class FlightFolder {
  constructor() {
    const parent = isWritable(MEMORY_DIR) ? MEMORY_DIR : tmpdir()
    removeOrphans(parent)
    this.path = mkdtempSync(join(parent, `${PREFIX}${process.pid}-`))
  }

  clear() {
    for (const file of readdirSync(this.path)) rmSync(join(this.path, file), { force: true })
  }

  copyTo(folder) {
    for (const file of readdirSync(this.path)) copyFileSync(join(this.path, file), join(folder, file))
  }

  remove() {
    rmSync(this.path, { recursive: true, force: true })
  }
}

function isWritable(folder) {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Removes what guardians have left that were killed. Those of other users cannot be removed, and need not be. */
function removeOrphans(parent) {
  for (const name of readdirSync(parent)) {
    const pid = name.startsWith(PREFIX) ? Number.parseInt(name.slice(PREFIX.length), 10) : Number.NaN
    if (Number.isNaN(pid) || isRunning(pid)) continue
    try {
      rmSync(join(parent, name), { recursive: true, force: true })
    } catch {
      // Another user's.
    }
  }
}

/** A number on Linux; elsewhere there is one. */
function processNamespace() {
  try {
    return readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')
  } catch {
    return ''
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

module.exports = { FlightFolder }
