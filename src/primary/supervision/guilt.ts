// Which plugin a death is put down to: proof, or who was there each time.

import type { LogLevel } from '../../contracts/logger.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import type { Origin } from '../../core/causality/context.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import {
  type RawStep,
  STEP_CALL,
  STEP_EVENT,
  STEP_JOB,
  STEP_REQUEST,
  STEP_STREAM_EVENT,
} from '../../transport/memory/flight-recorder.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Routing } from '../http/routes.ts'
import type { CircuitBreaker, Confinement } from './circuit-breaker.ts'
import type { StackFrame } from './stack-probe.ts'

/** What a lane has begun counts as seen there until this long after its end: a timer that it left may still run, milliseconds. */
export const AFTERMATH_MS = 1000
/** Lanes are looked at this often, milliseconds. */
const LOOK_MS = 1000
/** After this many looks all counts are halved: what plugins did long ago says little. */
const LOOKS_KEPT = 1200
/** A plugin that was seen this often in lanes that went on is known not to end them at once. */
const KNOWN_AFTER = 3

/** Handlers, each by a text of its own. */
export type Handlers = ReadonlyMap<string, Origin>

/** How often each handler is seen in lanes that live on: the controls against which its deaths are held. */
export class Sightings {
  readonly #handlersOf: (lane: Lane) => Handlers
  #looks = 0
  readonly #seen = new Map<string, number>()
  readonly #seenOfPlugin = new Map<string, number>()
  /** What was seen at the last look: it counts when the lane is still there at the next. */
  #last = new Map<Lane, Handlers>()
  #timer: NodeJS.Timeout | undefined

  constructor(handlersOf: (lane: Lane) => Handlers) {
    this.#handlersOf = handlersOf
  }

  /** @param lanes those that are to be looked at, at each look */
  start(lanes: () => readonly Lane[], onLook: () => void): void {
    this.#timer = setInterval(() => {
      this.look(lanes())
      onLook()
    }, LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  look(lanes: readonly Lane[]): void {
    const last = this.#last
    this.#last = new Map()
    for (const lane of lanes) {
      const before = last.get(lane)
      if (before !== undefined) this.#count(before)
      this.#last.set(lane, this.#handlersOf(lane))
    }
    if (this.#looks > LOOKS_KEPT) this.#halve()
  }

  #count(handlers: Handlers): void {
    this.#looks++
    const plugins = new Set<string>()
    for (const [key, { plugin }] of handlers) {
      this.#seen.set(key, (this.#seen.get(key) ?? 0) + 1)
      plugins.add(plugin)
    }
    for (const plugin of plugins) this.#seenOfPlugin.set(plugin, (this.#seenOfPlugin.get(plugin) ?? 0) + 1)
  }

  #halve(): void {
    this.#looks /= 2
    for (const [key, seen] of this.#seen) {
      if (seen < 1) this.#seen.delete(key)
      else this.#seen.set(key, seen / 2)
    }
  }

  /** How many handlers were seen. */
  get size(): number {
    return this.#seen.size
  }

  /** How likely a handler is seen in a lane at any moment. Laplace's rule of succession: what was never seen is not impossible. */
  shareOf(key: string): number {
    return ((this.#seen.get(key) ?? 0) + 1) / (this.#looks + 2)
  }

  /** True for a plugin that has worked in lanes that went on. */
  isKnown(plugin: string): boolean {
    return (this.#seenOfPlugin.get(plugin) ?? 0) >= KNOWN_AFTER
  }

  /** A plugin has ended a lane: what it did before says no more that it does not. */
  forget(plugin: string): void {
    this.#seenOfPlugin.delete(plugin)
  }
}

/** Deaths that nothing explains count this long, and at most so many of them. */
const WINDOW_MS = 600_000
const DEATHS_KEPT = 20
/** A handler is named when chance would explain its deaths less often than this. */
const LEVEL = 0.01
/** The next handler of another plugin must be this many times as likely by chance. */
const LEAD = 10
/** After this many deaths without a name the likeliest plugin is tried alone. */
export const TRIAL_AFTER = 3

interface Death {
  readonly atMs: number
  readonly handlers: Handlers
}

export interface Suspect extends Origin {
  /** True when chance hardly explains its deaths. Else it is merely the likeliest. */
  readonly isNamed: boolean
}

/**
 * Finds the handler that was there at death after death, where the deaths themselves tell nothing.
 *
 * A handler that is seen in a lane with probability p at any moment (`Sightings.shareOf`) was there by chance at k or more of n deaths
 * with probability P(X ≥ k), X binomially distributed with n and p. With m handlers to choose from, one reaches any value m times as
 * often: its score is m · P(X ≥ k), and the lowest score is the suspect's. What always runs has a score of m, however often it was there.
 * Sources: the exact binomial test (Clopper and Pearson, Biometrika 26, 1934), Bonferroni's correction for several tests.
 */
export class Suspicion {
  readonly #sightings: Sightings
  #deaths: Death[] = []
  /** Plugins that were tried alone while other lanes went on dying. */
  readonly #acquitted = new Set<string>()

  constructor(sightings: Sightings) {
    this.#sightings = sightings
  }

  /**
   * A lane has died, and nothing tells why.
   * @param handlers what was seen in it
   * @returns the suspect; null when there is none yet
   */
  unexplained(handlers: Handlers, nowMs: number): Suspect | null {
    this.#deaths = [...this.#deaths.filter(({ atMs }) => nowMs - atMs < WINDOW_MS), { atMs: nowMs, handlers }]
    this.#deaths = this.#deaths.slice(-DEATHS_KEPT)
    const ranked = [...handlers]
      .filter(([, { plugin }]) => !this.#acquitted.has(plugin))
      .map(([key, origin]) => ({ origin, score: this.#scoreOf(key) }))
      .sort((a, b) => a.score - b.score)
    const [first] = ranked
    if (first === undefined) return null
    const rival = ranked.find(({ origin }) => origin.plugin !== first.origin.plugin)
    const isNamed = first.score < LEVEL && (rival === undefined || rival.score > LEAD * first.score)
    return isNamed || this.#deaths.length >= TRIAL_AFTER ? { ...first.origin, isNamed } : null
  }

  #scoreOf(key: string): number {
    const present = this.#deaths.filter(({ handlers }) => handlers.has(key)).length
    const choices = Math.max(1, this.#sightings.size)
    return choices * binomialTail(this.#deaths.length, present, this.#sightings.shareOf(key))
  }

  /** Lanes go on dying without this plugin: it is not what ends them. */
  acquit(plugin: string): void {
    this.#acquitted.add(plugin)
  }

  /** The code of the plugins is new. */
  reset(): void {
    this.#deaths = []
    this.#acquitted.clear()
  }
}

/** P(X ≥ k) where X counts the successes of n trials, each with probability p. */
export function binomialTail(n: number, k: number, p: number): number {
  let sum = 0
  let term = (1 - p) ** n
  for (let successes = 0; successes <= n; successes++) {
    if (successes >= k) sum += term
    term *= ((n - successes) / (successes + 1)) * (p / (1 - p))
  }
  return Math.min(1, sum)
}

/** The handlers that a lane has begun and not ended, or ended shortly before, as far as its flight recorder goes back. */
export function handlersOf(lane: Lane, routing: Routing, nowMs: number): Handlers {
  const handlers = new Map<string, Origin>()
  for (const step of lane.flight.steps()) {
    if (step.endedMs !== 0 && nowMs - step.endedMs > AFTERMATH_MS) continue
    const key = `${step.kind} ${step.subject}`
    if (handlers.has(key)) continue
    const origin = originOf(step, lane, routing)
    if (origin !== null) handlers.set(key, origin)
  }
  return named(handlers)
}

/** The handler that a lane has begun last and not ended; null when there is none. */
export function lastBegunIn(lane: Lane, routing: Routing): Origin | null {
  const last = lane.flight.steps().findLast(({ kind, endedMs }) => kind !== STEP_CALL && endedMs === 0)
  return last === undefined ? null : originOf(last, lane, routing)
}

/** The handler whose work it is; null for a call, and for what the lane does not host any more. */
export function originOf({ kind, subject }: RawStep, { manifest }: Lane, routing: Routing): Origin | null {
  switch (kind) {
    case STEP_REQUEST: {
      const plugin = routing.pluginOf(subject)
      return plugin === null ? null : { plugin, handler: routing.nameOf(subject) }
    }
    case STEP_EVENT:
    case STEP_STREAM_EVENT: {
      const subscription = manifest?.subscriptions.find(({ subscriberIndex }) => subscriberIndex === subject)
      return subscription === undefined ? null : { plugin: subscription.plugin, handler: subscription.identity }
    }
    case STEP_JOB: {
      const job = manifest?.jobs[subject]
      return job === undefined ? null : { plugin: job.plugin, handler: job.name }
    }
    default:
      return null
  }
}

/** By names: the numbers of subscribers and jobs are a lane's own. */
function named(handlers: Handlers): Handlers {
  return new Map([...handlers.values()].map((origin) => [`${origin.plugin} ${origin.handler}`, origin]))
}

interface JudgeOptions {
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
