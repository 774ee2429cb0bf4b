// Chooses the thread for changes of the store.
import type { ThreadStore } from '../../runtime/event-store/thread-store.ts'
import { writeStoreChanges } from '../../runtime/event-store/write-changes.ts'
import type { StoreAnswer, StoreChanges } from '../../transport/store-changes.ts'
import type { Lane } from '../dispatch/lane.ts'

interface Written {
  lane: Lane
  resolve: (answer: StoreAnswer) => void
  reject: (error: Error) => void
}

/** On a file lets the lane with the fewest requests write changes: a commit in the primary would hold up the listener. */
export class StoreWriter {
  readonly #lanes: () => readonly Lane[]
  readonly #log: ThreadStore
  readonly #open = new Map<number, Written>()
  #batch = 0

  /**
   * @param lanes lanes open for work
   * @param log the primary's, used while there is no lane
   */
  constructor(lanes: () => readonly Lane[], log: ThreadStore) {
    this.#lanes = lanes
    this.#log = log
  }

  write(changes: StoreChanges): Promise<StoreAnswer> {
    // Waiting for a server does not block the primary.
    if (this.#log.isOnServer) return this.#writeHere(changes)
    let best: Lane | undefined
    for (const lane of this.#lanes()) {
      if (!lane.responsive || lane.state !== 'ready') continue
      if (best === undefined || lane.requestsInFlight < best.requestsInFlight) best = lane
    }
    if (best === undefined) return this.#writeHere(changes)
    const lane = best
    const batch = ++this.#batch
    return new Promise((resolve, reject) => {
      this.#open.set(batch, { lane, resolve, reject })
      lane.post({ type: 'store-write', batch, changes })
    })
  }

  #writeHere(changes: StoreChanges): Promise<StoreAnswer> {
    return writeStoreChanges(this.#log.database, changes)
  }

  written(batch: number, error: string | null, answer: StoreAnswer): void {
    const open = this.#open.get(batch)
    this.#open.delete(batch)
    if (error === null) open?.resolve(answer)
    else open?.reject(new Error(error))
  }

  /** Rejects the batches of a dead lane: the settler writes them through another. */
  laneGone(lane: Lane): void {
    for (const [batch, open] of this.#open) {
      if (open.lane !== lane) continue
      this.#open.delete(batch)
      open.reject(new Error('the lane that was to write them is gone'))
    }
  }
}
