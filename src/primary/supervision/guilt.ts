// Which plugin a death is put down to: proof, or who was there each time. And which plugins the lanes are kept from because of that.

import { relative } from 'node:path'
import type { LogLevel } from '../../contracts/logger.ts'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import type { Origin } from '../../contracts/tracing.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Routing } from '../http/routes.ts'
import { CircuitBreaker, type OpenCircuit } from './circuit-breaker.ts'
import { DeathWindow, type LaneSet } from './lane-set.ts'
import type { StackFrame } from './stack-probe.ts'
import { hasJustEnded, originsIn, pluginIn } from './work.ts'

/** Lanes are looked at this often, milliseconds. */
const LOOK_MS = 1000
/** Who was at work without harm does none for this long, as far as deaths are concerned that nothing explains, milliseconds. */
const HARMLESS_MS = 60_000

/** Plugins that have worked in lanes which went on: what was seen in a lane counts when it is still there at the next look. */
export class Harmless {
  readonly #pluginsIn: (lane: Lane) => ReadonlySet<string>
  #last = new Map<Lane, ReadonlySet<string>>()
  /** When each was seen to do no harm, by `steadyMs`. */
  readonly #seenMs = new Map<string, number>()

  constructor(pluginsIn: (lane: Lane) => ReadonlySet<string>) {
    this.#pluginsIn = pluginsIn
  }

  look(lanes: readonly Lane[], nowMs: number): void {
    for (const lane of lanes) for (const plugin of this.#last.get(lane) ?? []) this.#seenMs.set(plugin, nowMs)
    this.#last = new Map(lanes.map((lane) => [lane, this.#pluginsIn(lane)]))
  }

  /** It has worked without harm since it has ended a lane last, if it has. */
  isKnown(plugin: string): boolean {
    return this.#seenMs.has(plugin)
  }

  /** The same, within the last minute. */
  isHarmless(plugin: string, nowMs: number): boolean {
    return nowMs - (this.#seenMs.get(plugin) ?? Number.NEGATIVE_INFINITY) < HARMLESS_MS
  }

  /** A plugin has ended a lane: what it did before says no more that it does not. */
  forget(plugin: string): void {
    this.#seenMs.delete(plugin)
  }
}

/** Deaths that nothing explains count this long, milliseconds. */
const UNEXPLAINED_MS = 600_000
/** So many of them, one after the other, tell who was at all of them. */
export const UNEXPLAINED_DEATHS = 3

export interface UnexplainedDeath {
  readonly atMs: number
  readonly plugins: ReadonlySet<string>
}

/** Who was there at each of several deaths. */
export const atAll = ([first = [], ...others]: readonly (readonly string[])[]): string[] =>
  first.filter((name) => others.every((there) => there.includes(name)))

/** The plugins that were there at each of the last deaths, but for those that do no harm. None while there are too few deaths. */
export function alwaysThere(deaths: readonly UnexplainedDeath[], isHarmless: (plugin: string) => boolean): string[] {
  const last = deaths.slice(-UNEXPLAINED_DEATHS)
  if (last.length < UNEXPLAINED_DEATHS) return []
  return atAll(last.map(({ plugins }) => [...plugins])).filter((plugin) => !isHarmless(plugin))
}

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

/** A plugin is confined when it is proved to have ended this many lanes within the window. */
const CONFINED_AFTER = 2
const WINDOW_MS = 60_000

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
  readonly harmless: Harmless
  /** Plugins that get a lane of their own. */
  readonly confined = new Marks()
  readonly #options: GuiltOptions
  #unexplained: UnexplainedDeath[] = []
  readonly #deathsOf = new Map<string, DeathWindow>()

  constructor(options: GuiltOptions) {
    const { lanes, onCircuit } = options
    this.#options = options
    this.harmless = new Harmless((lane) => pluginsOf(this.handlersIn(lane)))
    this.circuits = new CircuitBreaker((plugin, open) => {
      // Not among the others: it may well go on as before.
      if (open === null) this.#confine(plugin)
      onCircuit(plugin, open)
    })
    setInterval(() => {
      this.harmless.look(lanes.ready, steadyMs())
      this.#changed()
    }, LOOK_MS).unref()
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

  /** Names who is guilty where the black box alone does not tell. */
  name(lane: Lane, box: BlackBox): BlackBox {
    if (isProved(box) || lane.manifest === null || lane.role === 'quarantine') return box
    const handlers = this.handlersIn(lane)
    const isAlone = lane.role === 'probation'
    const [plugin, ...rivals] = isAlone ? pluginsOf(handlers) : this.#alwaysThere(handlers)
    if (plugin === undefined) return box
    if (rivals.length > 0) {
      if (!isAlone) this.#tryAlone([plugin, ...rivals])
      return box
    }
    const own = handlers.filter((each) => each.plugin === plugin)
    const handler = own.length === 1 ? own[0]!.handler : null
    const line = box.guilty?.line ?? null
    return { ...box, guilty: { plugin, handler, line, evidence: isAlone ? 'alone' : 'pattern' } }
  }

  #alwaysThere(handlers: readonly Origin[]): string[] {
    const nowMs = steadyMs()
    const death = { atMs: nowMs, plugins: pluginsOf(handlers) }
    this.#unexplained = [...this.#unexplained.filter(({ atMs }) => nowMs - atMs < UNEXPLAINED_MS), death]
    return alwaysThere(this.#unexplained, (plugin) => this.harmless.isHarmless(plugin, nowMs))
  }

  #tryAlone(plugins: readonly string[]): void {
    this.#options.log('WARNING', `Lanes die and nothing tells why: ${plugins.join(', ')} get a lane of their own`)
    for (const plugin of plugins) this.#confine(plugin)
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
    if (!guilty?.plugin || guilty.evidence === 'last') return
    const { plugin, line } = guilty
    if (lane.role !== 'quarantine' && lane.manifest !== null) {
      this.harmless.forget(plugin)
      if (!isProved(box) || this.#deathsProved(plugin) >= CONFINED_AFTER) this.#confine(plugin)
    }
    if (isProved(box)) this.circuits.recordDeath(plugin, `${message}${line ? ` (${line})` : ''}`)
  }

  /** With this one. */
  #deathsProved(plugin: string): number {
    const deaths = this.#deathsOf.get(plugin) ?? new DeathWindow(WINDOW_MS)
    this.#deathsOf.set(plugin, deaths)
    deaths.add(steadyMs())
    return deaths.size
  }

  /** The code of the plugins is new: none is guilty of anything. */
  reset(): void {
    this.#unexplained = []
    this.#deathsOf.clear()
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
  /** The best guess where several were there. */
  likely(): BlackBox['guilty']
}

/**
 * The plugin that brought a lane or the process down. The stack is proof, and so is the handler that made the timer, socket or promise whose callback
 * ended the thread; work that was in flight alone is nearly one.
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
  if (works.length === 1) {
    return { plugin: works[0]!.plugin, handler: works[0]!.name, line, evidence: isAloneProof ? 'alone' : 'last' }
  }
  const likely = end.likely()
  if (likely !== null) return { ...likely, line: likely.line ?? line }
  return line === null ? null : { plugin: null, handler: null, line, evidence: 'stack' }
}

/** A pattern is a reason to try a plugin alone, and the work that was begun last is a hint for people. Neither is proof. */
export function isProved({ guilty }: Pick<BlackBox, 'guilty'>): boolean {
  return guilty?.plugin != null && guilty.evidence !== 'last' && guilty.evidence !== 'pattern'
}
