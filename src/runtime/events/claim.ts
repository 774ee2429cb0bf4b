// What a handler may still do with the work it was given: an event, or a run of a job.
import type { LostReason } from '../../contracts/event-bus.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'

const SAID: Readonly<Record<LostReason, string>> = {
  timeout: 'its time is up',
  cancelled: 'it was cancelled',
  stopped: 'the process does not wait for it any longer',
  moved: 'another process has it',
}

/**
 * ```
 *   running ──► lost     its time is up, it was cancelled, the process stops, another process has it
 *      └──────► over     its handler has ended
 * ```
 */
type State = 'running' | 'lost' | 'over'

export abstract class Claim {
  #state: State = 'running'
  #loss: HeddleError | null = null
  #reason: LostReason | null = null
  #abort: AbortController | undefined

  /** Names the work in errors. */
  protected abstract readonly what: string

  /** Made when a handler first reads it: most never do. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#loss !== null) this.#abort.abort(this.#loss)
    }
    return this.#abort.signal
  }

  get isLost(): boolean {
    return this.#state === 'lost'
  }

  get isOver(): boolean {
    return this.#state === 'over'
  }

  get isStopped(): boolean {
    return this.#reason === 'stopped'
  }

  /** @throws DELIVERY_LOST, but not while the process stops */
  requireOwn(): void {
    if (this.#loss !== null && !this.isStopped) throw this.#loss
  }

  lose(reason: LostReason): void {
    // Its time may be up, or its slot lost, while the process stops.
    if (this.#state === 'over' || (this.#state === 'lost' && !this.isStopped)) return
    this.#state = 'lost'
    this.#reason = reason
    this.#loss = new HeddleError('DELIVERY_LOST', `${this.what} is no longer this handler's: ${SAID[reason]}`, {
      details: { reason },
    })
    this.#abort?.abort(this.#loss)
  }

  ended(): void {
    if (this.#state === 'running') this.#state = 'over'
  }
}
