// The turn of the loop in which an inbox looks again.
import { skipStopped } from '../../core/schedule/stopped-immediate.ts'

/** Runs a look in the next turn of the loop, and gets the loop on when a look was stopped. */
export class NextLook {
  readonly #look: () => void
  #next: NodeJS.Immediate | null = null
  /** The one that runs now. It stays when the handler that it runs is terminated. */
  #running: NodeJS.Immediate | null = null

  constructor(look: () => void) {
    this.#look = look
  }

  schedule(): void {
    this.#next = setImmediate(this.#run)
  }

  readonly #run = (): void => {
    this.#running = this.#next
    this.#look()
    this.#running = null
  }

  /** Lets Node go on: it does not get past an immediate that was stopped. @returns false when that is not a look */
  skipStopped(): boolean {
    const stopped = this.#running
    this.#running = null
    return skipStopped(stopped)
  }
}
