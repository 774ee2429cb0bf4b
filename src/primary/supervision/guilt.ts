// Which plugin a death is put down to, where there is proof. And which plugins the lanes are kept from because of that.

import { relative } from 'node:path'
import type { LogLevel } from '../../contracts/logger.ts'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import type { Origin } from '../../contracts/tracing.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Routing } from '../http/routes.ts'
import { CircuitBreaker, type OpenCircuit } from './circuit-breaker.ts'
import type { LaneSet } from './lane-set.ts'
import type { StackFrame } from './stack-probe.ts'
import { hasJustEnded, originsIn, pluginIn } from './work.ts'

/** The lanes are placed anew this often, milliseconds: the time of a plugin may be over. */
const LOOK_MS = 1000

const pluginsOf = (origins: readonly Origin[]): Set<string> => new Set(origins.map(({ plugin }) => plugin))

/** A plugin that has ended or blocked a lane is kept away from the others this long after the last time, milliseconds. */
const MARKED_MS = 60_000

/** Plugins of which something is known, each for a while after the last time. */
class Marks {
  readonly #untilMs = new Map<string, number>()

  get isEmpty(): boolean {
    return [...this.#untilMs.keys()].every((plugin) => !this.has(plugin))
  }

  has(plugin: string): boolean {
    return (this.#untilMs.get(plugin) ?? 0) > steadyMs()
  }

  /** @returns true when that was not known */
  add(plugin: string): boolean {
    const isNew = !this.has(plugin)
    this.#untilMs.set(plugin, steadyMs() + MARKED_MS)
    return isNew
  }

  clear(): void {
    this.#untilMs.clear()
  }
}

interface GuiltOptions {
  readonly routing: Routing
  readonly lanes: LaneSet
  /** The circuit of a plugin opens; null when the plugin is tried again. */
  readonly onCircuit: (plugin: string, open: OpenCircuit | null) => void
  /** Lanes may have to get other requests from now on. */
  readonly onChange: () => void
  readonly log: (level: LogLevel, message: string) => void
}

/**
 * Lays each death to a plugin, as far as can be told, and sees to it that the plugin costs the others no further lane: the probation lane alone
 * takes the requests of plugins that are confined, and one whose circuit is open gets none.
 */
export class Guilt {
  readonly circuits: CircuitBreaker
  /** Plugins that get a lane of their own. */
  readonly confined = new Marks()
  readonly #options: GuiltOptions

  constructor(options: GuiltOptions) {
    const { onCircuit } = options
    this.#options = options
    this.circuits = new CircuitBreaker((plugin, open) => {
      // Not among the others: it may well go on as before.
      if (open === null) this.#confine(plugin)
      onCircuit(plugin, open)
    })
    setInterval(() => this.#changed(), LOOK_MS).unref()
  }

  #changed(): void {
    const { lanes, onChange } = this.#options
    lanes.probation.want(!this.confined.isEmpty)
    onChange()
  }

  #confine(plugin: string): void {
    if (this.confined.add(plugin)) this.#changed()
  }

  /** The handlers that a lane has begun and not ended, or ended shortly before, as far as its flight recorder goes back. */
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

  // ── deaths ────────────────────────────────────────────────────────────────

  /** In the probation lane a death is of the only plugin that was at work there. */
  name(lane: Lane, box: BlackBox): BlackBox {
    if (isProved(box) || lane.manifest === null || lane.role !== 'probation') return box
    const handlers = this.handlersIn(lane)
    const [plugin, ...others] = pluginsOf(handlers)
    if (plugin === undefined || others.length > 0) return box
    const handler = handlers.length === 1 ? handlers[0]!.handler : null
    return { ...box, guilty: { plugin, handler, line: box.guilty?.line ?? null, evidence: 'alone' } }
  }

  /** A plugin blocks a lane, and at most one other lane answers. The stack proves it. */
  blocked(lane: Lane, stack: readonly StackFrame[]): void {
    const plugin = pluginIn(stack, lane.manifest?.files ?? {})
    if (plugin === undefined || !this.confined.add(plugin)) return
    this.#changed()
    this.#options.log('WARNING', `${plugin} blocks lane ${lane.index}: its requests get a lane of their own`)
  }

  /** Confines who is guilty, and counts the death where there is proof. */
  punish(lane: Lane, box: BlackBox): void {
    const { guilty, message } = box
    if (!guilty?.plugin || !isProved(box)) return
    const { plugin, line } = guilty
    if (lane.role !== 'quarantine' && lane.manifest !== null) this.#confine(plugin)
    this.circuits.recordDeath(plugin, `${message}${line ? ` (${line})` : ''}`)
  }

  /** The code of the plugins is new: none is guilty of anything. */
  reset(): void {
    this.circuits.reset()
    this.confined.clear()
    this.#changed()
  }
}

/** The end of a lane or of a process, as far as it may tell whose work it was. */
interface End {
  /** Where the thread stood or what it threw, innermost frame first; empty when unknown. */
  readonly stack: readonly StackFrame[]
  /** The handler that had made what ended the thread; null when unknown. */
  readonly origin: Origin | null
  /** File of the plugin that was being booted, and alone in that; null when there is none. */
  readonly bootCulprit: string | null
  /** What was being done. */
  readonly works: readonly WorkInFlight[]
  /** Work that was there alone must have ended it. */
  readonly isAloneProof: boolean
  /** Absolute path of each plugin's file, by plugin. */
  readonly files: Readonly<Record<string, string>>
  /** True for a file whose lines are worth telling. */
  isOwnFile(file: string): boolean
}

/**
 * The plugin that brought a lane or the process down. The stack is proof, and so is the handler that made the timer, socket or promise whose callback
 * ended the thread, and to have been in flight alone. Null where nothing proves it.
 */
export function guiltyOf(end: End): BlackBox['guilty'] {
  const { stack, origin, bootCulprit, works, isAloneProof } = end
  const frame = stack.find(({ file }) => end.isOwnFile(file))
  const line = frame === undefined ? null : `${relative(process.cwd(), frame.file)}:${frame.line}:${frame.column}`
  const plugin = pluginIn(stack, end.files)
  if (plugin !== undefined) {
    const own = works.filter((work) => work.plugin === plugin)
    const handler = origin?.bootFile !== undefined ? origin.handler : own.length === 1 ? own[0]!.name : null
    return { plugin, handler, line, evidence: 'stack' }
  }
  const place = line ?? (bootCulprit === null ? null : relative(process.cwd(), bootCulprit))
  if (origin !== null) return { plugin: origin.plugin, handler: origin.handler, line: place, evidence: 'origin' }
  if (bootCulprit !== null) return { plugin: null, handler: null, line: place, evidence: 'alone' }
  if (works.length === 1 && isAloneProof) {
    return { plugin: works[0]!.plugin, handler: works[0]!.name, line, evidence: 'alone' }
  }
  return line === null ? null : { plugin: null, handler: null, line, evidence: 'stack' }
}

/** Whoever is named is proved. */
export const isProved = ({ guilty }: Pick<BlackBox, 'guilty'>): boolean => guilty?.plugin != null
