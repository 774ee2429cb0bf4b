import { steadyMs } from '../../core/schedule/steady-time.ts'
import { DeathWindow } from './death-window.ts'
import type { LaneDeath } from './lane-death.ts'
import type { LaneThread } from './lane-thread.ts'

/** What a boot has left behind bars its plugin at once when it ends a lane so soon after that, milliseconds. */
export const BOOT_AFTERMATH_MS = 10_000
/** Later than that it takes this many deaths within the window. */
const LATE_DEATHS = 2
const WINDOW_MS = 60_000

/** Plugins whose boot, or what that has left behind, ends lanes, or that break what JavaScript brings: lanes start without them until there is new code. */
export class BarredPlugins {
  #reasons: Readonly<Record<string, string>>
  #lateDeaths = new Map<string, DeathWindow>()
  readonly #waiting = new Set<string>()

  /** @param reasons by file: of those that are barred from the first lane on */
  constructor(reasons: Readonly<Record<string, string>>) {
    this.#reasons = reasons
  }

  /** Why each is left out, by file. */
  get reasons(): Readonly<Record<string, string>> {
    return this.#reasons
  }

  /** Files of plugins that one thread is booting still, while lanes run without them. */
  get waiting(): ReadonlySet<string> {
    return this.#waiting
  }

  /** Lanes start without the plugin, until `admit`. */
  waitFor(file: string): void {
    this.#waiting.add(file)
  }

  /** What lanes did not wait for has booted. @returns their files */
  admit(): string[] {
    const files = [...this.#waiting]
    this.#waiting.clear()
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
  laneDied(thread: LaneThread, death: LaneDeath, line: string | null | undefined): boolean {
    const file = death.bootCulprit
    if (file === null) return false
    if (this.#reasons[file] === undefined && this.#isEnough(thread, file, death)) {
      const left = death.reason === 'broken' ? 'by what it has broken' : 'by what it left behind when it booted'
      const when = thread.bootedMs === null ? 'while it booted' : left
      this.#bar(file, `It brought down a lane ${when}: ${death.message}${line ? ` (${line})` : ''}`)
    }
    return this.#reasons[file] !== undefined && !thread.without.has(file)
  }

  #bar(file: string, reason: string): void {
    this.#waiting.delete(file)
    this.#reasons = { ...this.#reasons, [file]: reason }
  }

  #isEnough({ bootedMs }: LaneThread, file: string, { reason }: LaneDeath): boolean {
    const nowMs = steadyMs()
    if (bootedMs === null || (reason !== 'broken' && nowMs - bootedMs < BOOT_AFTERMATH_MS)) return true
    const deaths = this.#lateDeaths.get(file) ?? new DeathWindow(WINDOW_MS)
    this.#lateDeaths.set(file, deaths)
    deaths.add(nowMs)
    return deaths.size >= LATE_DEATHS
  }

  /** There is new code: each gets another chance. @returns what takes that chance back */
  reset(): () => void {
    const reasons = this.#reasons
    this.#reasons = {}
    this.#lateDeaths = new Map()
    return () => {
      this.#reasons = reasons
    }
  }
}
