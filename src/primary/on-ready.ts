import { POISON_DEATHS } from '../events/hub.ts'
import type { Lane } from '../lanes/lane.ts'

/** `onReady` of the lanes' plugins: in one lane for the whole process, once. */
export class OnReady {
  readonly #lanes: () => readonly Lane[]
  readonly #log: (message: string) => void
  /** The lane that is at it, until it says that it is done. */
  #at: Lane | 'done' | undefined
  #deaths = 0

  /** @param lanes the regular lanes */
  constructor(lanes: () => readonly Lane[], log: (message: string) => void) {
    this.#lanes = lanes
    this.#log = log
  }

  /** Has it run, unless that was done already. */
  run(): void {
    if (this.#at !== undefined) return
    const lane = this.#lanes().find(({ manifest, state }) => manifest !== null && state !== 'dead')
    if (lane === undefined) return
    this.#at = lane
    lane.post({ type: 'ready' })
  }

  done(): void {
    this.#at = 'done'
  }

  /** True while a lane is at it. */
  isAt(lane: Lane): boolean {
    return this.#at === lane
  }

  /** The lane that was at it has died: another one runs it, unless it is what kills them. */
  laneGone(lane: Lane): void {
    if (lane !== this.#at) return
    if (++this.#deaths >= POISON_DEATHS) {
      return this.#log(`${this.#deaths} lanes died while they ran onReady: it is not run again`)
    }
    this.#at = undefined
    this.run()
  }
}
