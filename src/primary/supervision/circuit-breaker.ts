// Disables plugins that keep crashing lanes: by their handlers for a while, by their boot until there is new code.

import { steadyMs } from '../../core/schedule/clock.ts'
import { DeathWindow, type LaneThread } from './lane-set.ts'

/** The circuit of a plugin opens after this many proved crashes within the window. */
export const CIRCUIT_CRASHES = 5
export const CIRCUIT_WINDOW_MS = 60_000
/** How long a circuit stays open at first. Each further time takes twice as long, up to the longest. */
export const CIRCUIT_OPEN_MS = 10_000
export const CIRCUIT_MAX_OPEN_MS = 600_000

/** One plugin's circuit: closed, open while the timer runs, then half open until `halfOpenUntilMs`. */
interface Circuit {
  readonly crashes: DeathWindow
  /** How often it has opened in a row. */
  openings: number
  /** Runs while the circuit is open. */
  timer: NodeJS.Timeout | null
  /** One more crash before this time opens the circuit again. Milliseconds since the epoch. */
  halfOpenUntilMs: number
}

export interface OpenCircuit {
  /** When the plugin is tried again, milliseconds since the epoch. */
  untilMs: number
  reason: string
}

/** Disables a plugin whose handlers crash lane after lane, each time for longer. */
export class CircuitBreaker {
  readonly #circuits = new Map<string, Circuit>()
  readonly #onChange: (plugin: string, open: OpenCircuit | null) => void

  /** @param onChange told when the circuit of a plugin opens, and (null) when the plugin is tried again */
  constructor(onChange: (plugin: string, open: OpenCircuit | null) => void) {
    this.#onChange = onChange
  }

  /** A handler of this plugin has crashed a lane. @param cause what happened, with its line */
  recordCrash(plugin: string, cause: string, nowMs = Date.now()): void {
    const circuit = this.#circuitOf(plugin)
    circuit.crashes.add(nowMs)
    if (circuit.timer !== null) return
    const isHalfOpen = nowMs < circuit.halfOpenUntilMs
    if (!isHalfOpen && circuit.crashes.size < CIRCUIT_CRASHES) return
    if (!isHalfOpen) circuit.openings = 0
    const openMs = Math.min(CIRCUIT_MAX_OPEN_MS, CIRCUIT_OPEN_MS * 2 ** circuit.openings)
    const count = isHalfOpen ? 'another lane' : `${circuit.crashes.size} lanes in ${CIRCUIT_WINDOW_MS / 1000} s`
    this.disable(plugin, nowMs + openMs, `its handlers crashed ${count}; last: ${cause}`, nowMs)
  }

  /** Opens a circuit, unless it is open. @param untilMs since the epoch */
  disable(plugin: string, untilMs: number, why: string, nowMs = Date.now()): void {
    const circuit = this.#circuitOf(plugin)
    if (circuit.timer !== null) return
    circuit.openings++
    circuit.timer = setTimeout(() => this.#halfOpen(plugin, circuit), untilMs - nowMs).unref()
    this.#onChange(plugin, { untilMs, reason: `Disabled until ${new Date(untilMs).toISOString()}: ${why}` })
  }

  isOpen(plugin: string): boolean {
    return this.#circuits.get(plugin)?.timer != null
  }

  /** Closes all circuits: the code of the plugins is new. */
  reset(): void {
    for (const [plugin, { timer }] of this.#circuits) {
      if (timer === null) continue
      clearTimeout(timer)
      this.#onChange(plugin, null)
    }
    this.#circuits.clear()
  }

  #circuitOf(plugin: string): Circuit {
    let circuit = this.#circuits.get(plugin)
    if (circuit === undefined) {
      circuit = { crashes: new DeathWindow(CIRCUIT_WINDOW_MS), openings: 0, timer: null, halfOpenUntilMs: 0 }
      this.#circuits.set(plugin, circuit)
    }
    return circuit
  }

  #halfOpen(plugin: string, circuit: Circuit): void {
    circuit.timer = null
    circuit.crashes.clear()
    circuit.halfOpenUntilMs = Date.now() + CIRCUIT_WINDOW_MS
    this.#onChange(plugin, null)
  }
}

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
      this.#bar(file, `It brought down a lane ${when}: ${death.message}${line ? ` (${line})` : ''}`)
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
    deaths.add(nowMs)
    return deaths.size >= LATE_DEATHS
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
