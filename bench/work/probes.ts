// Jobs of another tenant, one after another.

const BETWEEN_MS = 5
/** After that a queue is asked no more: what it has shown is enough. */
const MOST_MS = 20_000

/**
 * @param begin adds a job, and resolves when its handler has begun
 * @returns how long each took, milliseconds; of one that did not begin in time, how long it has waited
 */
export async function probe(probes: number, begin: () => Promise<void>): Promise<number[]> {
  const tookMs: number[] = []
  const endMs = performance.now() + MOST_MS
  while (tookMs.length < probes && performance.now() < endMs) {
    const startMs = performance.now()
    await orTimeout(begin(), endMs - startMs)
    tookMs.push(performance.now() - startMs)
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_MS))
  }
  return tookMs
}

/** Resolves when the work is done, or after a time. */
async function orTimeout(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, late])
  clearTimeout(timer)
}

/** Jobs whose begin is waited for. */
export class Begins {
  readonly #waiting = new Map<string, () => void>()

  /** Call it before the job is added. */
  of(id: string): Promise<void> {
    return new Promise((resolve) => this.#waiting.set(id, resolve))
  }

  has(id: string): void {
    this.#waiting.get(id)?.()
    this.#waiting.delete(id)
  }
}
