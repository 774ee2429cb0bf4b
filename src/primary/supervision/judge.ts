import type { LogLevel } from '../../contracts/logger.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import type { Origin } from '../../core/causality/context.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { CircuitBreaker } from './circuit-breaker.ts'
import type { Confinement } from './confinement.ts'
import { AFTERMATH_MS, type Handlers, type Sightings } from './sightings.ts'
import type { StackFrame } from './stack-probe.ts'
import type { Suspicion } from './suspicion.ts'

export interface JudgeOptions {
  readonly sightings: Sightings
  readonly suspicion: Suspicion
  readonly confinement: Confinement
  readonly circuitBreaker: CircuitBreaker
  readonly handlersOf: (lane: Lane) => Handlers
  readonly lastBegunIn: (lane: Lane) => Origin | null
  readonly log: (level: LogLevel, message: string) => void
}

/** Lays each death to a plugin, as far as can be told, and sees to it that the plugin costs the others no further lane. */
export class Judge {
  readonly #options: JudgeOptions
  /** Plugins that are confined without proof, and since when, milliseconds since the epoch. */
  readonly #suspects = new Map<string, number>()

  constructor(options: JudgeOptions) {
    this.#options = options
  }

  /** Names who is guilty where the black box alone does not tell. */
  name(lane: Lane, box: BlackBox): BlackBox {
    if (isProved(box) || lane.manifest === null) return box
    const line = box.guilty?.line ?? null
    const handlers = this.#options.handlersOf(lane)
    if (lane.role === 'probation') {
      const [only, ...more] = handlers.values()
      if (only === undefined || more.some(({ plugin }) => plugin !== only.plugin)) return box
      const handler = more.length === 0 ? only.handler : null
      return { ...box, guilty: { plugin: only.plugin, handler, line, evidence: 'alone' } }
    }
    if (lane.role !== 'regular') return box
    const nowMs = steadyMs()
    this.#acquit(nowMs)
    const suspect = this.#options.suspicion.unexplained(handlers, nowMs)
    if (suspect === null) return box
    const { plugin, handler, isNamed } = suspect
    this.#suspects.set(plugin, nowMs)
    if (isNamed) return { ...box, guilty: { plugin, handler, line, evidence: 'pattern' } }
    this.#options.log('WARNING', `Lanes die and nothing tells why: ${plugin} is tried in a lane of its own`)
    this.#options.confinement.confine(plugin)
    return box
  }

  /** Regular lanes go on dying without them: they are not what ends lanes. */
  #acquit(nowMs: number): void {
    const { suspicion, confinement, log } = this.#options
    for (const [plugin, sinceMs] of this.#suspects) {
      if (nowMs - sinceMs <= AFTERMATH_MS) continue
      this.#suspects.delete(plugin)
      if (!confinement.isConfined(plugin)) continue
      log('WARNING', `Lanes die without ${plugin}: it is under suspicion no more`)
      suspicion.acquit(plugin)
      confinement.release(plugin)
    }
  }

  /** A lane stands still, and hardly another is left: who holds it up is kept away from the last one that answers. */
  stalled(lane: Lane, stack: readonly StackFrame[] | null): void {
    const files = new Map(Object.entries(lane.manifest?.files ?? {}).map(([plugin, file]) => [file, plugin]))
    const named = stack?.map(({ file }) => files.get(file)).find((plugin) => plugin !== undefined)
    const plugin = named ?? this.#options.lastBegunIn(lane)?.plugin
    if (plugin === undefined || !this.#options.confinement.stalls(plugin)) return
    this.#options.log('WARNING', `${plugin} stands still in the lanes: one of them is kept for the others`)
  }

  /** A lane has died, or is about to. */
  died(lane: Lane): void {
    if (lane.role === 'regular') this.#options.confinement.laneDied(lane, steadyMs())
  }

  /** Confines who is guilty, and counts the death where there is proof. */
  punish(lane: Lane, box: BlackBox): void {
    const { sightings, confinement, circuitBreaker } = this.#options
    const { guilty, message } = box
    this.died(lane)
    if (!guilty?.plugin || guilty.evidence === 'last') return
    if (lane.role !== 'quarantine' && lane.manifest !== null) {
      sightings.forget(guilty.plugin)
      if (isProved(box)) confinement.blame(guilty.plugin, steadyMs())
      else confinement.confine(guilty.plugin)
    }
    if (!isProved(box)) return
    this.#suspects.delete(guilty.plugin)
    circuitBreaker.recordDeath(guilty.plugin, `${message}${guilty.line ? ` (${guilty.line})` : ''}`)
  }

  /** The code of the plugins is new. */
  reset(): void {
    this.#suspects.clear()
    this.#options.suspicion.reset()
    this.#options.confinement.reset()
  }
}

/** A pattern is a reason to try a plugin alone, and the work that was begun last is a hint for people. Neither is proof. */
export function isProved({ guilty }: Pick<BlackBox, 'guilty'>): boolean {
  return guilty?.plugin != null && guilty.evidence !== 'last' && guilty.evidence !== 'pattern'
}
