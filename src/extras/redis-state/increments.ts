// The increments of a turn, in one script.
import { HeddleError } from '../../core/errors/catalogue.ts'
import { type RedisClient, readScript } from '../../stores/redis/client.ts'

export const INCREMENT = readScript(new URL('./increment-n.lua', import.meta.url))

/** Most counters in one script. The server needs about 0.2 ms for them and does nothing else meanwhile. */
const BATCH_MAX = 256

interface Waiting {
  resolve(sum: number): void
  reject(fault: HeddleError): void
  /** @param text the text that the script returned, see increment-n.lua */
  refuse(text: string): HeddleError
}

interface Batch {
  step: number
  ttlMs: number
  keys: string[]
  waiting: Waiting[]
}

/**
 * Sends the increments of one turn of the event loop in one script. The step and the time to live are mostly the same, so each counter
 * costs only its key and a number. They keep the order of their calls; call `flush` before another command.
 */
export class Increments {
  readonly #client: RedisClient
  #batch: Batch | null = null

  constructor(client: RedisClient) {
    this.#client = client
  }

  /** @param ttlMs 0: none */
  add(key: string, step: number, ttlMs: number, waiting: Waiting): void {
    let batch = this.#batch
    if (batch === null || batch.step !== step || batch.ttlMs !== ttlMs) {
      if (batch === null) process.nextTick(this.flush)
      else this.#send(batch)
      batch = { step, ttlMs, keys: [], waiting: [] }
      this.#batch = batch
    }
    batch.keys.push(key)
    batch.waiting.push(waiting)
    if (batch.keys.length === BATCH_MAX) this.flush()
  }

  readonly flush = (): void => {
    const batch = this.#batch
    if (batch === null) return
    this.#batch = null
    this.#send(batch)
  }

  #send({ step, ttlMs, keys, waiting }: Batch): void {
    this.#client.run<(number | string)[]>(INCREMENT, keys, [step, ttlMs]).then(
      (results) => {
        for (let index = 0; index < waiting.length; index++) {
          const result = results[index]!
          if (typeof result === 'number') waiting[index]!.resolve(result)
          else if (/^-?\d+$/.test(result)) waiting[index]!.resolve(Number(result))
          else waiting[index]!.reject(waiting[index]!.refuse(result))
        }
      },
      (fault: HeddleError) => {
        // Each caller gets its own error, because some add to the error that they catch.
        const { code, message, cause, details } = fault
        for (const { reject } of waiting) reject(new HeddleError(code, message, { cause, details }))
      },
    )
  }
}
