import { toWire, type WireError } from '../../core/errors/wire.ts'
import { KIND } from '../../transport/frames/frame-kinds.ts'
import type { Outbox } from '../../transport/rings/outbox.ts'

/** Answers the publications of one lane, once per batch of frames: everything up to a number is accepted, except what was refused. */
export class PublishAnswers {
  readonly #outbox: Outbox
  #answeredUpTo = -1
  #refused: { sequence: number; error: WireError }[] = []

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  accept(sequence: number): void {
    this.#answeredUpTo = sequence
  }

  refuse(sequence: number, error: unknown): void {
    this.#refused.push({ sequence, error: toWire(error) })
    this.#answeredUpTo = sequence
  }

  /** Sends the answers to what has come since the last call. */
  send(): void {
    if (this.#answeredUpTo < 0) return
    for (const { sequence, error } of this.#refused)
      this.#outbox.answerText(KIND.PUBLISH_REFUSED, sequence, JSON.stringify(error))
    if (this.#refused.length > 0) this.#refused = []
    this.#outbox.answerText(KIND.PUBLISH_ACCEPTED, this.#answeredUpTo, '')
    this.#answeredUpTo = -1
  }
}
