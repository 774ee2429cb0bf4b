import { execFile } from 'node:child_process'

/** The command waits by itself until the manager has read the message, for 5 s at most. */
const NOTIFY_TIMEOUT_MS = 6000

/**
 * Reports the state of this process to the service manager, as sd_notify(3) says. Does nothing where there is no service manager.
 * Node has no datagram sockets of the unix family, so the command `systemd-notify` sends the message. It is a child of this process:
 * hence `NotifyAccess=all` in the unit.
 */
export class ServiceManager {
  readonly #isPresent: boolean
  readonly #onFault: (message: string) => void
  /** One message at a time: the last message must arrive last. */
  #last: Promise<void> = Promise.resolve()
  #hasFailed = false

  /**
   * @param socket `NOTIFY_SOCKET`; the command reads it from the environment by itself
   * @param onFault called once, however often it fails
   */
  constructor(socket: string | undefined, onFault: (message: string) => void) {
    this.#isPresent = socket !== undefined
    this.#onFault = onFault
  }

  /** The process has started or reloaded, and takes traffic. */
  ready(status: string): Promise<void> {
    return this.#notify('READY=1', `STATUS=${status}`)
  }

  /** Call `ready` when the reload is over, however it ended. */
  reloading(status: string): Promise<void> {
    // `Type=notify-reload` asks for the time.
    const nowUs = process.hrtime.bigint() / 1000n
    return this.#notify('RELOADING=1', `MONOTONIC_USEC=${nowUs}`, `STATUS=${status}`)
  }

  stopping(status: string): Promise<void> {
    return this.#notify('STOPPING=1', `STATUS=${status}`)
  }

  /** The loop of the primary turns: the manager ends a process that does not say so in time (`WatchdogSec`). */
  alive(): Promise<void> {
    return this.#notify('WATCHDOG=1')
  }

  /** A status text for people, without a change of state. */
  status(status: string): Promise<void> {
    return this.#notify(`STATUS=${status}`)
  }

  /** Resolves when the manager has the message, or will never get it. Nothing has to wait for that. */
  #notify(...assignments: string[]): Promise<void> {
    if (this.#isPresent) this.#last = this.#last.then(() => this.#send(assignments))
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
