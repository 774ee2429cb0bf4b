// Whether descriptors are left, and who holds them.
import type { Holder } from '../../transport/messages.ts'
import type { Lane, Lanes } from '../dispatch/lane.ts'
import { type ConnectionLimit, isCountCheap } from '../http/connection-limit.ts'
import type { Log } from '../logging/process-log.ts'

/** How often it is looked how many descriptors are left, milliseconds: seldom where that reads a list of them all. */
const CHECK_MS = isCountCheap() ? 250 : 1000
/** Lanes that have not answered by then who holds them are busy, milliseconds. */
const ANSWER_MS = 100
/** Few are left when all but connections take more than this share of them. */
const FEW_SHARE = 0.8
/** A lane is ended when one handler has opened this share of all there, and not closed it. */
const HELD_SHARE = 0.25

/** Looks whether the process has descriptors left (`ulimit -n`). Where few are, it finds out who holds them, and ends that lane. */
export class Descriptors {
  readonly #connections: Pick<ConnectionLimit, 'open' | 'descriptors'>
  readonly #lanes: Pick<Lanes, 'all'>
  readonly #log: Log
  readonly #end: (lane: Lane, holder: Holder) => void
  /** Which handlers have files open, as lanes have answered since they were asked last. */
  readonly #holders = new Map<Lane, readonly Holder[]>()
  #ending: Lane | null = null
  #fault: string | null = null
  #isTold = false

  /** @param end ends a lane, and with it the files that are open in it */
  constructor(
    connections: Pick<ConnectionLimit, 'open' | 'descriptors'>,
    lanes: Pick<Lanes, 'all'>,
    log: Log,
    end: (lane: Lane, holder: Holder) => void,
  ) {
    this.#connections = connections
    this.#lanes = lanes
    this.#log = log
    this.#end = end
  }

  start(): void {
    setInterval(() => this.#check(), CHECK_MS).unref()
  }

  report(lane: Lane, holders: readonly Holder[]): void {
    this.#holders.set(lane, holders)
  }

  /** Why hardly a descriptor is left; null while some are. */
  get fault(): string | null {
    return this.#fault
  }

  #check(): void {
    const { used, limit } = this.#connections.descriptors()
    if (used - this.#connections.open < FEW_SHARE * limit) {
      if (this.#isTold) this.#log('INFO', `Descriptors are left again: ${used} of ${limit} are used`, 'main')
      this.#fault = null
      this.#isTold = false
      return
    }
    this.#fault ??= `${used} of ${limit} descriptors are used (ulimit -n)`
    this.#holders.clear()
    for (const lane of this.#lanes.all) lane.post({ type: 'open-files' })
    setTimeout(() => this.#tellOf(used, limit), ANSWER_MS).unref()
  }

  #tellOf(used: number, limit: number): void {
    const all = [...this.#holders].flatMap(([lane, holders]) => holders.map((holder) => ({ lane, holder })))
    const [worst] = all.sort((a, b) => b.holder.files - a.holder.files)
    if (worst !== undefined) {
      const { plugin, handler, files } = worst.holder
      this.#fault = `${used} of ${limit} descriptors are used (ulimit -n), ${files} of them by files that ${plugin} has opened in ${handler} and not closed`
    }
    if (!this.#isTold) this.#log('ERROR', `Not ready: ${this.#fault}`, 'main')
    this.#isTold = true
    if (worst === undefined || worst.holder.files < HELD_SHARE * limit) return
    if (this.#ending !== null && this.#lanes.all.includes(this.#ending)) return
    this.#ending = worst.lane
    this.#end(worst.lane, worst.holder)
  }
}
