import { execFile } from 'node:child_process'

/** The command waits until the manager has read the message, for 5 s at most by itself. */
const NOTIFY_TIMEOUT_MS = 6000

/**
 * Tells the service manager how this process fares, as sd_notify(3) says. Does nothing when there is none to tell.
 * Node has no datagram sockets of the unix family, so the message goes by the command `systemd-notify`: of the process's own
 * children, hence `NotifyAccess=all` in the unit.
 */
export class ServiceManager {
  readonly #isThere: boolean
  readonly #onFault: (message: string) => void
  /** One message at a time: what is said last must arrive last. */
  #last: Promise<void> = Promise.resolve()
  #hasFailed = false

  /**
   * @param socket `NOTIFY_SOCKET`; the command reads it from the environment by itself
   * @param onFault for the log: called once, however often it fails
   */
  constructor(socket: string | undefined, onFault: (message: string) => void) {
    this.#isThere = socket !== undefined
    this.#onFault = onFault
  }

  /** Started, or done with reloading: fit for traffic. */
  ready(status: string): Promise<void> {
    return this.#tell('READY=1', `STATUS=${status}`)
  }

  /** Call `ready` when it is over, however it ended. */
  reloading(status: string): Promise<void> {
    // The time is what Type=notify-reload asks for.
    const nowUs = process.hrtime.bigint() / 1000n
    return this.#tell('RELOADING=1', `MONOTONIC_USEC=${nowUs}`, `STATUS=${status}`)
  }

  stopping(status: string): Promise<void> {
    return this.#tell('STOPPING=1', `STATUS=${status}`)
  }

  /** A line for people, without a change of state. */
  status(status: string): Promise<void> {
    return this.#tell(`STATUS=${status}`)
  }

  /** Resolves when the manager has it, or will never have it; nothing need wait for that. */
  #tell(...assignments: string[]): Promise<void> {
    if (this.#isThere) this.#last = this.#last.then(() => this.#send(assignments))
    return this.#last
  }

  #send(assignments: string[]): Promise<void> {
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
