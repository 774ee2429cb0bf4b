import type { Manifest } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { LaneReplacement } from './lane-replacement.ts'
import type { LaneSlot, LaneThread } from './lane-thread.ts'

export interface RollingReloadOptions {
  slots: readonly LaneSlot[]
  replacement: LaneReplacement
  /** Threads from now on have new code. @returns what takes that back */
  beginGeneration: () => () => void
  /** What speaks against new code, by what a lane with it hosts; null when nothing does. */
  refusalOf: (manifest: Manifest) => string | null
  isStopping: () => boolean
  /** A thread that was replaced did not leave in order. */
  onFault: (lane: Lane, error: unknown) => void
}

/** Replaces all lanes by new threads that load the code anew. Both ways throw when a new lane does not boot, or boots with less than the old ones. */
export class RollingReload {
  readonly #options: RollingReloadOptions

  constructor(options: RollingReloadOptions) {
    this.#options = options
  }

  /** One after another, each when the one before has finished what it had: the process is never short of lanes. Those that were not replaced stay. */
  async inTurn(): Promise<void> {
    const { slots, replacement, beginGeneration } = this.#options
    const takeBack = beginGeneration()
    for (const slot of slots) {
      if (this.#options.isStopping()) throw new Error(STOPPING)
      const arrival = await replacement.call(slot)
      const fault = this.#faultOf(arrival)
      if (fault !== null) {
        takeBack()
        replacement.dismiss(arrival.fresh)
        const taken = slot.index === 0 ? '' : ` (lanes before ${slot.index} have the new code)`
        throw new Error(`${fault}${taken}`)
      }
      await replacement.takeOver(slot, arrival.fresh)
    }
  }

  /** All at the same moment, so that no request meets the old code any more, or none; the old ones finish by themselves. For who waits for the change. */
  async together(): Promise<void> {
    const { slots, replacement, beginGeneration } = this.#options
    const takeBack = beginGeneration()
    const arrivals = await Promise.all(slots.map((slot) => replacement.call(slot)))
    const fault = arrivals.map((arrival) => this.#faultOf(arrival)).find((each) => each !== null)
    if (fault !== undefined) {
      takeBack()
      for (const { fresh } of arrivals) replacement.dismiss(fresh)
      throw new Error(fault!)
    }
    const leaving = slots.flatMap((slot, n) => replacement.succeed(slot, arrivals[n]!.fresh))
    for (const thread of leaving) replacement.retire(thread).catch((error) => this.#options.onFault(thread.lane, error))
  }

  #faultOf({ fresh, fault }: { fresh: LaneThread; fault: string | null }): string | null {
    if (this.#options.isStopping()) return STOPPING
    return fault ?? this.#options.refusalOf(fresh.lane.manifest!)
  }
}

const STOPPING = 'the service is stopping'
