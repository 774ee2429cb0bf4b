import { DeathWindow } from './death-window.ts'

/** The circuit of a plugin opens when its handlers bring down this many lanes within the window. */
export const CIRCUIT_DEATHS = 5
export const CIRCUIT_WINDOW_MS = 60_000
/** How long a circuit stays open at first. Each further time takes twice as long, up to the longest. */
export const CIRCUIT_OPEN_MS = 10_000
export const CIRCUIT_MAX_OPEN_MS = 600_000

/** One plugin's circuit: closed, open while the timer runs, then half open until `halfOpenUntilMs`. */
interface Circuit {
  readonly deaths: DeathWindow
  /** How often it has opened in a row. */
  openings: number
  /** Runs while the circuit is open. */
  timer: NodeJS.Timeout | null
  /** One more death before this time opens the circuit again. Milliseconds since the epoch. */
  halfOpenUntilMs: number
}

export interface OpenCircuit {
  /** When the plugin is tried again, milliseconds since the epoch. */
  untilMs: number
  reason: string
}

/** Plugins whose handlers bring down lane after lane get no work for a growing pause, so that all others keep the lanes. */
export class CircuitBreaker {
  readonly #circuits = new Map<string, Circuit>()
  readonly #onChange: (plugin: string, open: OpenCircuit | null) => void

  /** @param onChange told when the circuit of a plugin opens, and (null) when the plugin is tried again */
  constructor(onChange: (plugin: string, open: OpenCircuit | null) => void) {
    this.#onChange = onChange
  }

  /** A handler of this plugin has brought down a lane. @param cause what happened, with its line */
  recordDeath(plugin: string, cause: string, nowMs = Date.now()): void {
    const circuit = this.#circuitOf(plugin)
    circuit.deaths.add(nowMs)
    if (circuit.timer !== null) return
    const isHalfOpen = nowMs < circuit.halfOpenUntilMs
    if (!isHalfOpen && circuit.deaths.size < CIRCUIT_DEATHS) return
    if (!isHalfOpen) circuit.openings = 0
    const openMs = Math.min(CIRCUIT_MAX_OPEN_MS, CIRCUIT_OPEN_MS * 2 ** circuit.openings)
    circuit.openings++
    circuit.timer = setTimeout(() => this.#halfOpen(plugin, circuit), openMs).unref()
    const untilMs = nowMs + openMs
    const count = isHalfOpen ? 'another lane' : `${circuit.deaths.size} lanes in ${CIRCUIT_WINDOW_MS / 1000} s`
    this.#onChange(plugin, {
      untilMs,
      reason: `Set aside until ${new Date(untilMs).toISOString()}: its handlers brought down ${count}; last: ${cause}`,
    })
  }

  /** Opens a circuit at once: the plugin has ended whole processes. */
  setAside(plugin: string, openMs: number, reason: string, nowMs = Date.now()): void {
    const circuit = this.#circuitOf(plugin)
    if (circuit.timer !== null) return
    circuit.openings++
    circuit.timer = setTimeout(() => this.#halfOpen(plugin, circuit), openMs).unref()
    this.#onChange(plugin, { untilMs: nowMs + openMs, reason })
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
      circuit = { deaths: new DeathWindow(CIRCUIT_WINDOW_MS), openings: 0, timer: null, halfOpenUntilMs: 0 }
      this.#circuits.set(plugin, circuit)
    }
    return circuit
  }

  #halfOpen(plugin: string, circuit: Circuit): void {
    circuit.timer = null
    circuit.deaths.clear()
    circuit.halfOpenUntilMs = Date.now() + CIRCUIT_WINDOW_MS
    this.#onChange(plugin, null)
  }
}
