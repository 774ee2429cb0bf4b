import type { Origin } from '../../core/causality/context.ts'
import type { Handlers, Sightings } from './sightings.ts'

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
