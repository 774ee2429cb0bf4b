import { Room } from './room.ts'
import { SlowMarks } from './slow-marks.ts'

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
  readonly #slow = new SlowMarks()
  readonly #room = new Room(KEPT_PER_SECOND)
  readonly #kinds = new Map<string, number>()

  /** @param share of the requests that are kept although nothing is wrong with them, 0 to 1 */
  constructor(share: number) {
    this.isAll = share >= 1
    this.#bound = Math.floor(share * HASHES)
  }

  /** The number of a kind of work, for `keeps`. */
  kindOf(name: string): number {
    let kind = this.#kinds.get(name)
    if (kind === undefined) {
      kind = this.#kinds.size
      this.#kinds.set(name, kind)
    }
    return kind
  }

  /** Whether work that has not failed is kept. @param id of its request, or of its event @param kind of work that takes about as long */
  keeps(id: string, kind: number, ms: number, nowMs: number): boolean {
    if (this.isAll) return true
    const isSlow = this.#slow.isAbove(kind, ms)
    // Under load the room is used up most of the time: then the id need not be read.
    return this.#room.isFree(nowMs) && (isSlow || numberOf(id) < this.#bound) && this.#room.take(nowMs)
  }
}

/** FNV-1a over the last characters. Source: RFC 9923. */
function numberOf(id: string): number {
  let hash = 0x811c9dc5
  for (let n = Math.max(0, id.length - 12); n < id.length; n++) hash = Math.imul(hash ^ id.charCodeAt(n), 0x01000193)
  return (hash >>> 0) % HASHES
}
