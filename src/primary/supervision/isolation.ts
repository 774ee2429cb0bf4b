// Isolates plugins that are proved to have crashed or blocked a lane, and counts their crashes.
import type { LogLevel } from '../../contracts/logger.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import type { Origin } from '../../contracts/tracing.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Routing } from '../http/routes.ts'
import { CircuitBreaker, type OpenCircuit } from './circuit-breaker.ts'
import type { LaneSet } from './lane-set.ts'
import type { StackFrame } from './stack-probe.ts'
import { hasJustEnded, originsIn, pluginIn } from './work.ts'

/** A plugin is isolated for this long after its last proved crash, milliseconds. */
const ISOLATION_MS = 60_000
/** How often isolation is checked for its end, milliseconds. */
const CHECK_MS = 1000

/** Names that leave the set ISOLATION_MS after they were added last. */
class ExpiringSet {
  readonly #untilMs = new Map<string, number>()

  get isEmpty(): boolean {
    return [...this.#untilMs.keys()].every((name) => !this.has(name))
  }

  has(name: string): boolean {
    return (this.#untilMs.get(name) ?? 0) > steadyMs()
  }

  /** @returns true when it was not there */
  add(name: string): boolean {
    const isNew = !this.has(name)
    this.#untilMs.set(name, steadyMs() + ISOLATION_MS)
    return isNew
  }

  clear(): void {
    this.#untilMs.clear()
  }
}

interface IsolationOptions {
  readonly routing: Routing
  readonly lanes: LaneSet
  /** The circuit of a plugin opens; null when the plugin is tried again. */
  readonly onCircuit: (plugin: string, open: OpenCircuit | null) => void
  /** Requests may have to go to other lanes. */
  readonly onChange: () => void
  readonly log: (level: LogLevel, message: string) => void
}

/** The plugins whose requests go to the probation lane, and the circuit breaker that disables those which crash it again and again. */
export class Isolation {
  readonly circuits: CircuitBreaker
  readonly #isolated = new ExpiringSet()
  /** The lanes that isolated plugins have blocked, and not crashed. */
  readonly #blocked = new Map<string, Lane>()
  readonly #options: IsolationOptions

  constructor(options: IsolationOptions) {
    const { onCircuit } = options
    this.#options = options
    this.circuits = new CircuitBreaker((plugin, open) => {
      // A plugin that is tried again may crash as before.
      if (open === null) this.#isolate(plugin)
      onCircuit(plugin, open)
    })
    setInterval(() => this.#changed(), CHECK_MS).unref()
  }

  has(plugin: string): boolean {
    return this.#isolated.has(plugin)
  }

  /** The lane whose requests of a plugin wait there until the probation lane is up; undefined: they are refused until then. */
  blockedBy(plugin: string): Lane | undefined {
    return this.#blocked.get(plugin)
  }

  #changed(): void {
    const { lanes, onChange } = this.#options
    lanes.probation.want(!this.#isolated.isEmpty)
    onChange()
  }

  #isolate(plugin: string): void {
    if (this.#isolated.add(plugin)) this.#changed()
  }

  /** Handlers that a lane has begun and not ended, or ended just before, as far as its flight recorder goes back. */
  handlersIn(lane: Lane): Origin[] {
    const originOf = originsIn(lane, this.#options.routing)
    const handlers = new Map<string, Origin>()
    for (const step of lane.flight.steps()) {
      if (step.endedMs !== 0 && !hasJustEnded(step)) continue
      const origin = originOf(step)
      if (origin !== null) handlers.set(`${origin.plugin} ${origin.handler}`, origin)
    }
    return [...handlers.values()]
  }

  /** A crash of the probation lane is proved if only one plugin was at work there. */
  attribute(lane: Lane, box: BlackBox): BlackBox {
    if (box.guilty?.plugin != null || lane.manifest === null || lane.role !== 'probation') return box
    const handlers = this.handlersIn(lane)
    const [plugin, ...others] = new Set(handlers.map((each) => each.plugin))
    if (plugin === undefined || others.length > 0) return box
    const handler = handlers.length === 1 ? handlers[0]!.handler : null
    return { ...box, guilty: { plugin, handler, line: box.guilty?.line ?? null, evidence: 'alone' } }
  }

  /** The stack of a lane that stands still proves who blocks it. */
  blocked(lane: Lane, stack: readonly StackFrame[]): void {
    const plugin = pluginIn(stack, lane.manifest?.files ?? {})
    if (plugin === undefined) return
    const isNew = !this.has(plugin)
    if (isNew) this.#blocked.set(plugin, lane)
    this.#isolate(plugin)
    if (isNew) this.#options.log('WARNING', `${plugin} blocks lane ${lane.index}: its requests get a lane of their own`)
  }

  /** Isolates the plugin that is proved to have crashed a lane, and counts the crash. */
  recordCrash(lane: Lane, { guilty, message }: BlackBox): void {
    if (guilty?.plugin == null) return
    const { plugin, line } = guilty
    const waitsNoMore = this.#blocked.delete(plugin)
    // The quarantine lane handles events, and a lane without a manifest has not booted.
    if (lane.role !== 'quarantine' && lane.manifest !== null) this.#isolate(plugin)
    if (waitsNoMore) this.#changed()
    this.circuits.recordCrash(plugin, `${message}${line ? ` (${line})` : ''}`)
  }

  /** The code of the plugins is new. */
  reset(): void {
    this.circuits.reset()
    this.#isolated.clear()
    this.#blocked.clear()
    this.#changed()
  }
}
