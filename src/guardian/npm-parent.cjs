// What becomes of a process when npm, or the shell that has started it, ends.
const { readFileSync } = require('node:fs')

/** npm passes SIGINT and SIGTERM on to what it has started. SIGHUP ends npm, and its child is not told. */
const CHECK_MS = 250

const SHELLS = ['sh', 'dash', 'bash', 'ash', 'zsh', 'ksh', 'busybox']

/**
 * Gives this process the signal that what has started it has died of. npm itself has died of SIGHUP, so `npm start` reloads by it: the service then
 * goes on without npm, and says how it is ended. A shell, which stands between where the script has no `exec`, has died of npm's SIGINT or SIGTERM.
 */
exports.followNpm = function followNpm() {
  const parent = process.ppid
  const isBehindShell = isShell(parent)
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    if (!isBehindShell)
      process.stderr.write(
        `npm has ended (SIGHUP ends it): the service loads its new code, and goes on as process ${process.pid}. \`kill ${process.pid}\` ends it; \`kill -HUP ${process.pid}\` reloads it\n`,
      )
    process.kill(process.pid, isBehindShell ? 'SIGTERM' : 'SIGHUP')
  }, CHECK_MS)
  timer.unref()
}

/** False where the system has no `/proc` to tell it. */
function isShell(pid) {
  try {
    return SHELLS.includes(readFileSync(`/proc/${pid}/comm`, 'utf8').trim())
  } catch {
    return false
  }
}
