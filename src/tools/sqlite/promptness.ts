/** So many prompt runs outweigh one that was not. */
const LATE_WEIGHT = 64
/** So many runs must have succeeded, or have succeeded since the last that failed, before a function runs without a savepoint. */
const NEW_CAUTION = 16
const FAILED_CAUTION = 256
/** Functions that are remembered. The one that came first is forgotten first. */
const MAX_FUNCTIONS = 1024

/** What is known of the functions with one source text, or of one route. */
export interface Promptness {
  /** Above zero: their last runs waited for nothing but their `tx`. */
  score: number
  /** Above zero: one of their last runs has failed, or there were few so far. */
  caution: number
}

/**
 * Remembers which functions of transactions wait for nothing but their `tx`. Only such a one may follow others in a commit, because they wait
 * for it. A function is known by its source text: each call of the code around it makes a new function object. Or by the name of its route,
 * which costs less than the text.
 */
export class PromptFunctions {
  readonly #known = new Map<string, Promptness>()

  /** @param work a function, or what it is known by */
  of(work: unknown): Promptness {
    const source = typeof work === 'string' ? work : sourceOf(work)
    const known = this.#known.get(source)
    if (known !== undefined) return known
    if (this.#known.size >= MAX_FUNCTIONS) this.#known.delete(this.#known.keys().next().value as string)
    const unknown: Promptness = { score: 0, caution: NEW_CAUTION }
    this.#known.set(source, unknown)
    return unknown
  }
}

/** @param hasSucceeded its result is to be committed */
export function noteRun(promptness: Promptness, wasPrompt: boolean, hasSucceeded: boolean): void {
  if (!hasSucceeded) promptness.caution = FAILED_CAUTION
  else if (promptness.caution > 0) promptness.caution--
  if (!wasPrompt) promptness.score = -LATE_WEIGHT
  else if (promptness.score < 1) promptness.score++
}

// Not `work.toString()`, which may be anything.
const textOf = Function.prototype.toString

/** What is no function fails when it is called. */
function sourceOf(work: unknown): string {
  return typeof work === 'function' ? textOf.call(work) : ''
}
