import type { Manifest } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { LaneReplacement, Replacement } from './lane-replacement.ts'
import type { LaneSlot } from './lane-thread.ts'

export interface RollingReloadOptions {
  slots: readonly LaneSlot[]
  replacement: LaneReplacement
  /** Threads that start from now on have new code. @returns what takes that back */
  beginGeneration: () => () => void
  /** Why the code of a new lane is refused; null when it is taken. */
  refusalOf: (manifest: Manifest) => string | null
  isStopping: () => boolean
  /** A thread that was replaced did not leave in order. */
  onFault: (lane: Lane, error: unknown) => void
}

/**
 * Replaces all lanes by new threads that load the code anew. Both ways throw when a new lane does not boot, or boots with fewer plugins
 * than the old ones.
 */
export class RollingReload {
  readonly #options: RollingReloadOptions

  constructor(options: RollingReloadOptions) {
    this.#options = options
  }

  /**
   * Replaces one lane after another, each when the one before has finished its work: the process is never short of lanes. When it throws,
   * the lanes that were not replaced stay.
   */
  async oneByOne(): Promise<void> {
    const { slots, replacement, beginGeneration } = this.#options
    const takeBack = beginGeneration()
    for (const slot of slots) {
      if (this.#options.isStopping()) throw new Error(STOPPING)
      const started = await replacement.start(slot)
      const fault = this.#faultOf(started)
      if (fault !== null) {
        takeBack()
        replacement.discard(started.fresh)
        const taken = slot.index === 0 ? '' : ` (lanes before ${slot.index} have the new code)`
        throw new Error(`${fault}${taken}`)
      }
      await replacement.takeOver(slot, started.fresh)
    }
  }

  /**
   * Replaces all lanes at the same moment, or none: no request meets the old code any more. The old lanes finish by themselves. For
   * development, where somebody waits for the change.
   */
  async allAtOnce(): Promise<void> {
    const { slots, replacement, beginGeneration } = this.#options
    const takeBack = beginGeneration()
    const started = await Promise.all(slots.map((slot) => replacement.start(slot)))
    const fault = started.map((each) => this.#faultOf(each)).find((each) => each !== null)
    if (fault !== undefined) {
      takeBack()
      for (const { fresh } of started) replacement.discard(fresh)
      throw new Error(fault!)
    }
    const replaced = slots.flatMap((slot, n) => replacement.install(slot, started[n]!.fresh))
    for (const thread of replaced) replacement.drain(thread).catch((error) => this.#options.onFault(thread.lane, error))
  }

  #faultOf({ fresh, fault }: Replacement): string | null {
    if (this.#options.isStopping()) return STOPPING
    // It may have died since.
    return fault ?? fresh.deathMessage ?? this.#options.refusalOf(fresh.lane.manifest!)
  }
}

const STOPPING = 'the service is stopping'
