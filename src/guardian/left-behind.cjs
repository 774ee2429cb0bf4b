// What a runtime that is gone has started and left, and its end.
const { readdirSync, readFileSync } = require('node:fs')

/** Marks all that a runtime starts, and what that starts: by the value of this variable, in the environment that each was started with. */
const MARK = 'HEDDLE_RUN'
/** A process that is just being ended may have started another one. */
const ROUNDS = 5

/**
 * Ends what a runtime that is gone has started and left: it may have had no time to do so. What is not in its group is found on Linux alone.
 * @param pid what the runtime had: it led its group
 * @param run value of its mark
 */
function endLeftBehind(pid, run) {
  // What it was waiting for (`execSync`).
  end(-pid)
  const mark = `${MARK}=${run}\0`
  for (let round = 0; round < ROUNDS && marked(mark).filter(end).length > 0; round++);
}

function marked(mark) {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && environOf(name).includes(mark))
  } catch {
    // Not Linux.
    return []
  }
}

/** Source: proc(5), /proc/pid/environ. Empty for another user's, and for one that has ended. As UTF-8, for which Node takes the least memory. */
function environOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8')
  } catch {
    return ''
  }
}

/** False when it has ended by itself. */
function end(pid) {
  try {
    return process.kill(Number(pid), 'SIGKILL')
  } catch {
    return false
  }
}

module.exports = { endLeftBehind }
