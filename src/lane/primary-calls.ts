import { HeddleError } from '../core/errors/catalogue.ts'
import { fromWire, type WireError } from '../core/errors/wire.ts'
import { KIND } from '../transport/frames/frame-kinds.ts'
import type { Outbox } from '../transport/rings/outbox.ts'

// Taken before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

/** Calls to the primary that one lane may have open at a time. */
export const CALLS_MAX_OPEN = 65_536

/** A lane's calls to the primary: tools with one store per process, and the runtime's own services (tool `#host`). */
export class PrimaryCalls {
  readonly #outbox: Outbox
  readonly #open = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  #nextId = 0

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  /** Calls that wait for their answer. */
  get open(): number {
    return this.#open.size
  }

  call(tool: string, method: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#open.size >= CALLS_MAX_OPEN)
        return reject(new HeddleError('LANE_BUSY', `${CALLS_MAX_OPEN} calls are open`))
      const id = this.#nextId
      this.#nextId = (id + 1) & 0x7fffffff
      if (!this.#outbox.sendText(KIND.CALL, id, toJson([tool, method, args]))) {
        return reject(new HeddleError('LANE_BUSY', 'The ring to the primary is full'))
      }
      this.#open.set(id, { resolve, reject })
    })
  }

  resolve(id: number, json: string): void {
    this.#take(id)?.resolve(parseJson(json))
  }

  reject(id: number, json: string): void {
    this.#take(id)?.reject(fromWire(parseJson(json) as WireError))
  }

  #take(id: number) {
    const call = this.#open.get(id)
    this.#open.delete(id)
    return call
  }
}
