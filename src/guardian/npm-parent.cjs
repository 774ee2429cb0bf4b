// What becomes of a process when npm, or the shell that has started it, ends.
const { readFileSync, write } = require('node:fs')

/** npm passes SIGINT and SIGTERM on to what it has started. SIGHUP ends npm, and its child is not told. */
const CHECK_MS = 250

const SHELLS = ['sh', 'dash', 'bash', 'ash', 'zsh', 'ksh', 'busybox']

/**
 * Gives this process the signal that what has started it has died of. npm itself has died of SIGHUP, so `npm start` reloads by it: the service then
 * goes on without npm, and says how it is ended. A shell, which stands between where the script has no `exec`, has died of npm's SIGINT or SIGTERM.
 */
exports.followNpm = function followNpm() {
  whenParentEnds((isBehindShell) => {
    if (!isBehindShell)
      tell(
        `npm has ended (SIGHUP ends it): the service loads its new code, and goes on as process ${process.pid}. \`kill ${process.pid}\` ends it; \`kill -HUP ${process.pid}\` reloads it\n`,
      )
    process.kill(process.pid, isBehindShell ? 'SIGTERM' : 'SIGHUP')
  })
}

/**
 * Ends what runs for a developer with whoever has started it: with its parent, with npm behind a shell that is its parent, and with its terminal.
 * A terminal that is closed sends SIGHUP to its foreground alone, and not to what `&` or `setsid` has put elsewhere.
 */
exports.endWithStarter = function endWithStarter({ followsParent, onGone }) {
  if (followsParent) whenParentEnds(() => onGone('What has started it has ended'), true)
  // The guardian does without it.
  const { isatty } = require('node:tty')
  const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor))
  if (terminals.length === 0) return
  const timer = setInterval(() => {
    // That of a terminal which is closed is none any more.
    if (terminals.every((descriptor) => isatty(descriptor))) return
    clearInterval(timer)
    onGone('The terminal is closed')
  }, CHECK_MS)
  timer.unref()
}

/** To the standard error, if that takes it: the terminal that has ended npm takes no line any more. */
const tell = (line) => write(2, line, () => {})

/** @param onEnd gets whether the parent was a shell @param isThroughShell the end of what has started that shell counts, too */
function whenParentEnds(onEnd, isThroughShell = false) {
  const parent = process.ppid
  const isBehindShell = isShell(parent)
  const before = isBehindShell && isThroughShell ? parentOf(parent) : null
  const timer = setInterval(() => {
    if (process.ppid === parent && (before === null || parentOf(parent) === before)) return
    clearInterval(timer)
    onEnd(isBehindShell)
  }, CHECK_MS)
  timer.unref()
}

/** Null where nobody can tell. */
function parentOf(pid) {
  try {
    return Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1])
  } catch {
    return null
  }
}

/** False where the system has no `/proc` to tell it. */
function isShell(pid) {
  try {
    return SHELLS.includes(readFileSync(`/proc/${pid}/comm`, 'utf8').trim())
  } catch {
    return false
  }
}
