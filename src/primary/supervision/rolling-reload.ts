import type { Manifest } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Succession } from './lane-replacement.ts'
import type { Berth, Place } from './lane-thread.ts'

export interface RenewalOptions {
  places: readonly Place[]
  succession: Succession
  /** Threads from now on have new code. @returns what takes that back */
  beginGeneration: () => () => void
  /** What speaks against new code, by what a lane with it hosts; null when nothing does. */
  refusalOf: (manifest: Manifest) => string | null
  isStopping: () => boolean
  /** A thread that was replaced did not leave in order. */
  onFault: (lane: Lane, error: unknown) => void
}

/** Replaces all lanes by new threads that load the code anew. Both ways throw when a new lane does not boot, or boots with less than the old ones. */
export class Renewal {
  readonly #options: RenewalOptions

  constructor(options: RenewalOptions) {
    this.#options = options
  }

  /** One after another, each when the one before has finished what it had: the process is never short of lanes. Those that were not replaced stay. */
  async inTurn(): Promise<void> {
    const { places, succession, beginGeneration } = this.#options
    const takeBack = beginGeneration()
    for (const place of places) {
      if (this.#options.isStopping()) throw new Error(STOPPING)
      const arrival = await succession.call(place)
      const fault = this.#faultOf(arrival)
      if (fault !== null) {
        takeBack()
        succession.dismiss(arrival.fresh)
        const taken = place.index === 0 ? '' : ` (lanes before ${place.index} have the new code)`
        throw new Error(`${fault}${taken}`)
      }
      await succession.takeOver(place, arrival.fresh)
    }
  }

  /** All at the same moment, so that no request meets the old code any more, or none; the old ones finish by themselves. For who waits for the change. */
  async together(): Promise<void> {
    const { places, succession, beginGeneration } = this.#options
    const takeBack = beginGeneration()
    const arrivals = await Promise.all(places.map((place) => succession.call(place)))
    const fault = arrivals.map((arrival) => this.#faultOf(arrival)).find((each) => each !== null)
    if (fault !== undefined) {
      takeBack()
      for (const { fresh } of arrivals) succession.dismiss(fresh)
      throw new Error(fault!)
    }
    const leaving = places.flatMap((place, n) => succession.succeed(place, arrivals[n]!.fresh))
    for (const berth of leaving) succession.retire(berth).catch((error) => this.#options.onFault(berth.lane, error))
  }

  #faultOf({ fresh, fault }: { fresh: Berth; fault: string | null }): string | null {
    if (this.#options.isStopping()) return STOPPING
    return fault ?? this.#options.refusalOf(fresh.lane.manifest!)
  }
}

const STOPPING = 'the service is stopping'
