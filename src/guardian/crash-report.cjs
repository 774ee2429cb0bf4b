const { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')

const PREFIX = 'crash-'
/** The folder of one report. No other one is touched. */
const REPORT = /^crash-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z-\d+(?:-\d+)?$/

/**
 * Writes a crash report: `<folder>/crash-<time>-<pid of the guardian>/report.json` and, beside it, the flight record as it was. It appears whole or not at all.
 * With several processes the name ends with the number of the one that died.
 * @param kept reports that stay; the oldest are removed
 */
exports.writeCrashReport = function writeCrashReport(folder, kept, { flight, stderr, startedMs, ...known }) {
  const nowMs = Date.now()
  mkdirSync(folder, { recursive: true, mode: 0o700 })
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
