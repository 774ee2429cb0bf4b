/** Judges from outside whether no more is begun of a limit than it lets begin. */
import { Finding } from '../oracle.ts'

/** So long what was granted may begin after the process knows of it, milliseconds: GRANT_MS in rate-limits.ts. */
const GRANT_MS = 50

export interface LimitPlan {
  readonly max: number
  readonly perMs: number
  /** One for each share. */
  readonly isByShare: boolean
}

interface Begun {
  readonly atMs: number
  /** It was counted then at the earliest. */
  readonly countedMs: number
}

/** How long the answers of a process to what it asks of its limits take: what is granted counts from before. */
export class Answers {
  readonly #nowMs: () => number
  /** The last ones. */
  #all: { answeredMs: number; tookMs: number }[] = []

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  async time<T>(ask: () => Promise<T>): Promise<T> {
    const askedMs = this.#nowMs()
    const answer = await ask()
    const answeredMs = this.#nowMs()
    this.#all.push({ answeredMs, tookMs: answeredMs - askedMs })
    return answer
  }

  /** When what begins now was counted at the earliest. */
  get countedMs(): number {
    const nowMs = this.#nowMs()
    this.#all = this.#all.filter(({ answeredMs }) => answeredMs >= nowMs - GRANT_MS)
    return nowMs - GRANT_MS - Math.max(0, ...this.#all.map(({ tookMs }) => tookMs))
  }
}

export class LimitJudge {
  readonly #begun = new Map<string, Begun[]>()

  /** @throws Finding if more have begun than the limit lets */
  begins(name: string, { max, perMs }: LimitPlan, begun: Begun): void {
    const all = this.#begun.get(name) ?? []
    this.#begun.set(name, all)
    all.push(begun)
    const last = all.slice(-max - 1)
    if (last.length <= max) return
    // However early they were counted, it was too late for the rest.
    const ms = begun.atMs - Math.min(...last.map(({ countedMs }) => countedMs))
    if (ms < perMs)
      throw new Finding(`${last.length} deliveries of ${name} have begun in ${ms} ms: ${max} may in ${perMs} ms`)
  }
}
