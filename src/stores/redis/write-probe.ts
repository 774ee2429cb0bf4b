// Notices that a key-value store refuses writes, and that it takes them again.
import type { LogLevel } from '../../contracts/logger.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'

/** Milliseconds between two looks, and between two writes while they are refused. */
const LOOK_MS = 250

interface WriteProbeOptions {
  /** How often a thread of this process was refused so far. */
  refusals: () => number
  /** Writes something that does no harm. Rejects when the store refuses it. */
  write: () => Promise<unknown>
  log: (level: LogLevel, message: string) => void
}

/** In the primary: once the store has refused a thread, it writes until the store takes that. */
export class WriteProbe {
  readonly #options: WriteProbeOptions
  #seen = 0
  #isTrying = false
  #reason: string | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(options: WriteProbeOptions) {
    this.#options = options
  }

  start(): void {
    this.#seen = this.#options.refusals()
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Why the process should get no requests; null while the store takes writes, as far as is known. */
  get reason(): string | null {
    if (this.#reason === null && this.#options.refusals() !== this.#seen) return 'the store has refused a write'
    return this.#reason
  }

  async #look(): Promise<void> {
    const refusals = this.#options.refusals()
    if (this.#isTrying || (this.#reason === null && refusals === this.#seen)) return
    this.#isTrying = true
    let reason: string | null = null
    try {
      await this.#options.write()
    } catch (error) {
      // A user who may not write this key says nothing of the store.
      if (!(error instanceof HeddleError && error.code === 'KV_REFUSED')) reason = messageOf(error)
    }
    if (reason !== null && this.#reason === null) this.#options.log('ERROR', `Not ready: ${reason}`)
    if (reason === null && this.#reason !== null) this.#options.log('INFO', 'The store takes writes again')
    this.#seen = refusals
    this.#reason = reason
    this.#isTrying = false
  }
}
