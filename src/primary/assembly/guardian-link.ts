import { rmSync } from 'node:fs'
import type { Settings } from '../../core/config/schema.ts'
import { isInspected } from '../supervision/debugger-hold.ts'

/** How often the process says that the loop of its primary thread turns, milliseconds. */
const ALIVE_MS = 1000
/** Crash reports that are kept. */
const CRASH_REPORTS_KEPT = 20

/** What the runtime says to the guardian. Everything else goes on to whoever has started the guardian. */
type ToGuardian =
  | { type: 'guarded'; stopMs: number; stallMs: number; crashReportsDir: string; crashReportsKept: number }
  | { type: 'alive'; isInspected: boolean }
  | { type: 'serving' | 'stopping' }
  | { type: 'reloaded'; ok: boolean }

/** This process's side of the channel to the guardian that has started it, and that starts it again. */
export class GuardianLink {
  /** Where the flight record is kept: a folder in memory that is there as long as the guardian is. */
  readonly flightDir: string
  #isLost = false

  constructor(flightDir: string) {
    this.flightDir = flightDir
  }

  /**
   * Says from now on that this process lives.
   * @param stopMs how long its end takes at most; SIGKILL comes after that
   * @param onLost the guardian is gone, in whatever way: nobody watches this process any more
   */
  open({ primaryStallMs, crashReportsDir }: Settings, stopMs: number, onLost: () => void): void {
    this.#send({
      type: 'guarded',
      stopMs,
      stallMs: primaryStallMs,
      crashReportsDir,
      crashReportsKept: CRASH_REPORTS_KEPT,
    })
    // Node's own report of an abort, where somebody has asked for one (`--report-on-fatalerror`), belongs to the crash report.
    if (process.report?.reportOnFatalError) process.report.directory = this.flightDir
    setInterval(() => this.#send({ type: 'alive', isInspected: isInspected() }), ALIVE_MS).unref()
    const lost = (): void => {
      if (this.#isLost) return
      this.#isLost = true
      onLost()
    }
    process.once('disconnect', lost)
    // The listener must not keep a drained process from its end.
    process.channel?.unref()
    if (!process.connected) lost()
  }

  serving(): void {
    this.#send({ type: 'serving' })
  }

  /** A reload is over. @param ok the code that is now on disk runs */
  reloaded(ok: boolean): void {
    this.#send({ type: 'reloaded', ok })
  }

  /** This process ends because it was told to: it is not to be started again. */
  stopping(): void {
    this.#send({ type: 'stopping' })
  }

  /** Before the end: what nobody else removes. */
  close(): void {
    if (this.#isLost) rmSync(this.flightDir, { recursive: true, force: true })
  }

  #send(message: ToGuardian): void {
    // A guardian that is gone hears nothing: `disconnect` says so.
    if (process.connected) process.send?.(message, undefined, undefined, () => {})
  }
}
