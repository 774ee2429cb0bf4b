/** Values of the hash by which a sample is chosen. */
const HASHES = 2 ** 24
/** In a sample: works of one thread in one second that are kept although they have not failed. */
const KEPT_PER_SECOND = 100

/**
 * Which work of a thread is kept: what failed, what was slow, and a sample. The sample is chosen by the id of the request, so that all
 * threads keep the parts of the same requests.
 */
export class Keep {
  /** Everything is kept. */
  readonly isAll: boolean
  readonly #bound: number
  #second = 0
  #kept = 0
  readonly #slow = new Map<string, SlowMark>()

  /** @param share of the requests that are kept although nothing is wrong with them, 0 to 1 */
  constructor(share: number) {
    this.isAll = share >= 1
    this.#bound = Math.floor(share * HASHES)
  }

  /** Whether work that has not failed is kept. @param id of its request, or of its event */
  keeps(id: string, name: string, ms: number, nowMs: number): boolean {
    if (this.isAll) return true
    const isSlow = this.#isSlow(name, ms)
    return (isSlow || numberOf(id) < this.#bound) && this.#hasRoom(nowMs)
  }

  #hasRoom(nowMs: number): boolean {
    const second = Math.floor(nowMs / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#kept = 0
    }
    return ++this.#kept <= KEPT_PER_SECOND
  }

  /** True for about one in a hundred of the calls for this name: the slowest ones. */
  #isSlow(name: string, ms: number): boolean {
    let mark = this.#slow.get(name)
    if (mark === undefined) {
      mark = new SlowMark()
      this.#slow.set(name, mark)
    }
    return mark.isAbove(ms)
  }
}

/** FNV-1a over the last characters. Source: RFC 9923. */
function numberOf(id: string): number {
  let hash = 0x811c9dc5
  for (let n = Math.max(0, id.length - 12); n < id.length; n++) hash = Math.imul(hash ^ id.charCodeAt(n), 0x01000193)
  return (hash >>> 0) % HASHES
}

/** Of durations, the share that is above the mark. */
const SHARE = 0.01
/** How far one duration moves the mark, as a part of it. */
const STEP = 0.05

/**
 * The duration that one in a hundred exceeds, found by small steps: up by much when one is above, down by little when one is below, so that
 * it stands still where a hundredth is above. Source: stochastic approximation of a quantile (Robbins and Monro, 1951).
 */
class SlowMark {
  #mark = 0

  isAbove(ms: number): boolean {
    if (this.#mark === 0) {
      this.#mark = ms
      return false
    }
    const isAbove = ms > this.#mark
    this.#mark *= isAbove ? 1 + STEP * (1 - SHARE) : 1 - STEP * SHARE
    return isAbove
  }
}
