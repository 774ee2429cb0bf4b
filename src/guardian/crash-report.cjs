// What is left of a process that has died: its flight record, in memory, and the report that is written of it.
const {
  accessSync,
  constants,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { makeFolder } = require('../core/modules/make-folder.cjs')

const PREFIX = 'crash-'
/** The folder of one report. No other one is touched. */
const REPORT = /^crash-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z-\d+(?:-\d+)?$/

/**
 * Writes a crash report: `<folder>/crash-<time>-<pid of the guardian>/report.json` and, beside it, the flight record as it was. It appears whole or not at all.
 * With several processes the name ends with the number of the one that died.
 * @param kept reports that stay; the oldest are removed
 */
function writeCrashReport(folder, kept, { flight, stderr, startedMs, ...known }) {
  const nowMs = Date.now()
  makeFolder(folder, 0o700)
  const unfinished = mkdtempSync(join(folder, 'unfinished-'))
  flight.copyTo(unfinished)
  const report = {
    at: new Date(nowMs).toISOString(),
    // Several guardians may keep their reports in one folder: each runtime reads its own guardian's.
    guardian: process.pid,
    // Left out where there is one process.
    process: known.number,
    signal: known.signal,
    code: known.code,
    stalled_ms: known.stallMs,
    lived_ms: nowMs - startedMs,
    had_served: known.hadServed,
    stderr: stderr.split('\n').filter((line) => line.trim() !== ''),
  }
  writeFileSync(join(unfinished, 'report.json'), `${JSON.stringify(report, null, 2)}\n`, { mode: 0o600 })
  const which = known.number === undefined ? '' : `-${known.number}`
  renameSync(unfinished, join(folder, `${PREFIX}${report.at.replaceAll(':', '-')}-${process.pid}${which}`))
  const reports = readdirSync(folder).filter((name) => REPORT.test(name))
  for (const old of reports.sort().slice(0, -kept)) rmSync(join(folder, old), { recursive: true, force: true })
}

/** Where files are memory, on Linux. */
const MEMORY_DIR = '/dev/shm'
/** Containers may share the folder, and number their processes each by itself: a guardian knows only those of its own. */
const FLIGHT_PREFIX = `heddle-flight-${processNamespace()}-`

/** A file of that folder: the number of a process, and when it has begun. */
const PROCESS_PREFIX = 'process-'

/** The folder in memory in which the runtime keeps its flight record: what is in flight, for the case that the process is gone at once. Nobody else may read it. */
class FlightFolder {
  constructor() {
    const parent = isWritable(MEMORY_DIR) ? MEMORY_DIR : tmpdir()
    removeOrphans(parent)
    this.path = mkdtempSync(join(parent, `${FLIGHT_PREFIX}${process.pid}-`))
  }

  clear() {
    for (const file of readdirSync(this.path)) rmSync(join(this.path, file), { force: true })
  }

  /** The processes that led a group when the runtime ended, each with when it has begun. @param pid of the runtime */
  leaders(pid) {
    const files = readdirSync(this.path).filter((name) => name.startsWith(PROCESS_PREFIX))
    const leaders = new Map([[pid, 0]])
    for (const file of files) {
      leaders.set(Number(file.slice(PROCESS_PREFIX.length)), Number(readFileSync(join(this.path, file), 'utf8')))
      rmSync(join(this.path, file))
    }
    return leaders
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
    const pid = name.startsWith(FLIGHT_PREFIX) ? Number.parseInt(name.slice(FLIGHT_PREFIX.length), 10) : Number.NaN
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

module.exports = { FlightFolder, writeCrashReport }
