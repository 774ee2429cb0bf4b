// What systemd is told of a process.
const { execFile } = require('node:child_process')

/** The command waits by itself until the manager has read the message, for 5 s at most. */
const NOTIFY_TIMEOUT_MS = 6000

/**
 * Reports the state of this process to the service manager, as sd_notify(3) says. Does nothing where there is no service manager.
 * Node has no datagram sockets of the unix family, so the command `systemd-notify` sends the message. It is a child of this process:
 * hence `NotifyAccess=all` in the unit.
 */
class ServiceManager {
  #isPresent
  #onFault
  /** One message at a time: the last message must arrive last. */
  #last = Promise.resolve()
  #hasFailed = false

  constructor(socket, onFault) {
    this.#isPresent = socket !== undefined
    this.#onFault = onFault
  }

  ready(status) {
    return this.#notify('READY=1', `STATUS=${status}`)
  }

  reloading(status) {
    // `Type=notify-reload` asks for the time.
    const nowUs = process.hrtime.bigint() / 1000n
    return this.#notify('RELOADING=1', `MONOTONIC_USEC=${nowUs}`, `STATUS=${status}`)
  }

  /** @param withinMs the manager gives it so long, whatever the unit says */
  stopping(status, withinMs) {
    const extended = withinMs === undefined ? [] : [`EXTEND_TIMEOUT_USEC=${withinMs * 1000}`]
    return this.#notify('STOPPING=1', ...extended, `STATUS=${status}`)
  }

  alive() {
    return this.#notify('WATCHDOG=1')
  }

  status(status) {
    return this.#notify(`STATUS=${status}`)
  }

  #notify(...assignments) {
    if (this.#isPresent) this.#last = this.#last.then(() => this.#send(assignments))
    return this.#last
  }

  #send(assignments) {
    // A line break would begin another assignment.
    const lines = assignments.map((line) => line.replaceAll('\n', ' '))
    return new Promise((resolve) => {
      const args = [`--pid=${process.pid}`, ...lines]
      const command = execFile('systemd-notify', args, { timeout: NOTIFY_TIMEOUT_MS }, (error) => {
        if (error !== null && !this.#hasFailed) {
          this.#hasFailed = true
          this.#onFault(`The service manager cannot be told: ${error.message}`)
        }
        resolve()
      })
      command.unref()
    })
  }
}

module.exports = { ServiceManager }
