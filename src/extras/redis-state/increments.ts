import { HeddleError } from '../../core/errors/catalogue.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import { readScript } from '../../stores/redis/script.ts'

export const INCREMENT = readScript(new URL('./increment-n.lua', import.meta.url))

/** Counters in one script: it takes the server about a fifth of a millisecond, in which it does nothing else. */
const BATCH_MAX = 256

interface Waiting {
  resolve(sum: number): void
  reject(fault: HeddleError): void
  /** @param text of the script, see there */
  refuse(text: string): HeddleError
}

interface Batch {
  step: number
  ttlMs: number
  keys: string[]
  waiting: Waiting[]
}

/**
 * Increments of one turn of the loop in one script: the step and the time to live are mostly the same, so that a counter costs its key
 * and a number. They stay in the order of their calls; whoever sends another command calls `flush` first.
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
        // Each caller gets an error of its own: some add to what they have caught.
        const { code, message, cause, details } = fault
        for (const { reject } of waiting) reject(new HeddleError(code, message, { cause, details }))
      },
    )
  }
}
