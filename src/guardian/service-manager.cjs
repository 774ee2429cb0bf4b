const { execFile } = require('node:child_process')

/** The command waits by itself until the manager has read the message, for 5 s at most. */
const NOTIFY_TIMEOUT_MS = 6000
/** How often the guardian reports within the time after which the manager takes it for hung. */
const REPORTS_PER_WATCHDOG = 3

/**
 * Tells the service manager of several processes as of one, as sd_notify(3) says; nothing where there is no such manager. Of one process the
 * runtime tells itself. That each process lives is the guardian's business: the manager is told that the guardian does.
 */
class ServiceManager {
  /** One message at a time: the last message must arrive last. */
  #last = Promise.resolve()

  constructor() {
    const { WATCHDOG_USEC, WATCHDOG_PID = String(process.pid) } = process.env
    const watchdogUsec = Number(WATCHDOG_USEC)
    if (!(watchdogUsec > 0) || WATCHDOG_PID !== String(process.pid)) return
    setInterval(() => this.#notify('WATCHDOG=1'), watchdogUsec / 1000 / REPORTS_PER_WATCHDOG).unref()
  }

  ready(status) {
    this.#notify('READY=1', `STATUS=${status}`)
  }

  reloading() {
    // `Type=notify-reload` asks for the time.
    this.#notify('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`, 'STATUS=Reloading')
  }

  stopping() {
    this.#notify('STOPPING=1', 'STATUS=Draining')
  }

  #notify(...assignments) {
    if (process.env.NOTIFY_SOCKET === undefined) return
    this.#last = this.#last.then(
      () =>
        new Promise((resolve) => {
          // Where the command fails, no message of a process would arrive, either.
          execFile('systemd-notify', [`--pid=${process.pid}`, ...assignments], { timeout: NOTIFY_TIMEOUT_MS }, resolve)
        }),
    )
  }
}

module.exports = { ServiceManager }
