// Plugins whose boot crashes lanes, or that take long to boot: lanes start without them until there is new code.
import { steadyMs } from '../../core/schedule/clock.ts'
import { withLine } from '../flight/work.ts'
import { DeathWindow, type LaneThread } from './lane-set.ts'

/** A crash this soon after the boot, by what the boot has left behind, bars the plugin at once, milliseconds. */
const BOOT_AFTERMATH_MS = 10_000
/** Later it takes this many crashes within the window. */
const LATE_DEATHS = 2
const WINDOW_MS = 60_000

/** The end of a lane, as far as a boot is its cause. */
interface BootDeath {
  readonly reason: string
  readonly message: string
  /** File of the plugin whose boot has ended the lane; null when something else has. */
  readonly bootCulprit: string | null
}

/** Plugins whose boot, or what it left behind, crashes lanes, or that replace builtins. Lanes start without them until there is new code. */
export class BarredPlugins {
  /** Why each is left out, by file. */
  reasons: Readonly<Record<string, string>>
  #lateDeaths = new Map<string, DeathWindow>()
  /** Files of plugins that one thread is booting still, while lanes run without them, until `admit`. */
  readonly waiting = new Set<string>()

  /** @param reasons by file: of those that are barred from the first lane on */
  constructor(reasons: Readonly<Record<string, string>>) {
    this.reasons = reasons
  }

  /** What lanes did not wait for has booted. @returns their files */
  admit(): string[] {
    const files = [...this.waiting]
    this.waiting.clear()
    return files
  }

  giveUpWaiting(reason: string): void {
    for (const file of this.admit()) this.#bar(file, reason)
  }

  /**
   * A lane has died.
   * @param line where, as far as that is known
   * @returns true when the next lane starts without a plugin that this one had: it does not die of the same
   */
  laneDied(thread: LaneThread, death: BootDeath, line: string | null | undefined): boolean {
    const file = death.bootCulprit
    if (file === null) return false
    if (this.reasons[file] === undefined && this.#isEnough(thread, file, death)) {
      const left = death.reason === 'broken' ? 'by what it has broken' : 'by what it left behind when it booted'
      const when = thread.bootedMs === null ? 'while it booted' : left
      this.#bar(file, `It brought down a lane ${when}: ${withLine(death.message, line)}`)
    }
    return this.reasons[file] !== undefined && !thread.without.has(file)
  }

  #bar(file: string, reason: string): void {
    this.waiting.delete(file)
    this.reasons = { ...this.reasons, [file]: reason }
  }

  #isEnough({ bootedMs }: LaneThread, file: string, { reason }: BootDeath): boolean {
    const nowMs = steadyMs()
    if (bootedMs === null || (reason !== 'broken' && nowMs - bootedMs < BOOT_AFTERMATH_MS)) return true
    const deaths = this.#lateDeaths.get(file) ?? new DeathWindow(WINDOW_MS)
    this.#lateDeaths.set(file, deaths)
    return deaths.add(nowMs) >= LATE_DEATHS
  }

  /** There is new code: each gets another chance. @returns what takes that chance back */
  reset(): () => void {
    const reasons = this.reasons
    this.reasons = {}
    this.#lateDeaths = new Map()
    return () => {
      this.reasons = reasons
    }
  }
}
