import { toWire } from '../../core/errors/wire.ts'
import { KIND } from '../../transport/frames/frame-kinds.ts'
import type { Outbox } from '../../transport/rings/outbox.ts'

/** Answers the calls of one lane's tools to the primary. */
export class CallAnswers {
  readonly #outbox: Outbox
  readonly #onCall: (tool: string, method: string, args: unknown[]) => unknown
  #isClosed = false

  constructor(outbox: Outbox, onCall: (tool: string, method: string, args: unknown[]) => unknown) {
    this.#outbox = outbox
    this.#onCall = onCall
  }

  call(id: number, json: string): void {
    const [tool, method, args] = JSON.parse(json) as [string, string, unknown[]]
    let result: unknown
    try {
      result = this.#onCall(tool, method, args)
    } catch (error) {
      return this.#fail(id, error)
    }
    if (result instanceof Promise) {
      result.then(
        (value) => this.#answer(id, value),
        (error) => this.#fail(id, error),
      )
    } else this.#answer(id, result)
  }

  /** From now on no call is answered. */
  close(): void {
    this.#isClosed = true
  }

  #answer(id: number, value: unknown): void {
    if (this.#isClosed) return
    let json: string
    try {
      json = JSON.stringify(value ?? null) ?? 'null'
    } catch (error) {
      return this.#fail(id, error)
    }
    this.#outbox.answerText(KIND.CALL_RESULT, id, json)
  }

  #fail(id: number, error: unknown): void {
    if (!this.#isClosed) this.#outbox.answerText(KIND.CALL_ERROR, id, JSON.stringify(toWire(error)))
  }
}
