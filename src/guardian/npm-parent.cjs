/** npm passes SIGINT and SIGTERM on to what it has started. SIGHUP ends npm, and its child is not told. */
const CHECK_MS = 250

/**
 * Gives this process the SIGHUP that its npm has died of, so that `npm start` reloads by it. The service then goes on without npm, and says how it
 * is ended.
 */
exports.followNpm = function followNpm() {
  const npm = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === npm) return
    clearInterval(timer)
    process.stderr.write(
      `npm has ended (SIGHUP ends it): the service loads its new code, and goes on as process ${process.pid}. \`kill ${process.pid}\` ends it; \`kill -HUP ${process.pid}\` reloads it\n`,
    )
    process.kill(process.pid, 'SIGHUP')
  }, CHECK_MS)
  timer.unref()
}
