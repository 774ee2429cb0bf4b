/** Answer cell: word 0 STATE, word 1 LENGTH, then the text. */
const ANSWER_STATE_WORD = 0
const ANSWER_LENGTH_WORD = 1
const ANSWER_TEXT_BYTE = 8
const ANSWER_BYTES = 128

const WAITING = 0
const ANSWERED = 1

export function createAnswerCell(): SharedArrayBuffer {
  return new SharedArrayBuffer(ANSWER_BYTES)
}

/**
 * One short text from the primary to a lane that waits for it, blocked. Only for what a handler reads synchronously and hardly ever:
 * the primary never waits for a lane, so this cannot lock up.
 */
export class AnswerCell {
  readonly #words: Int32Array
  readonly #bytes: Buffer

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
    this.#bytes = Buffer.from(memory, ANSWER_TEXT_BYTE)
  }

  /** The lane: before it asks. */
  clear(): void {
    Atomics.store(this.#words, ANSWER_STATE_WORD, WAITING)
  }

  /** The lane: the answer, or null when none came in time. */
  wait(timeoutMs: number): string | null {
    // Pairs with the store in `answer`.
    if (Atomics.wait(this.#words, ANSWER_STATE_WORD, WAITING, timeoutMs) === 'timed-out') return null
    return this.#bytes.toString('latin1', 0, this.#words[ANSWER_LENGTH_WORD])
  }

  /** The primary. */
  answer(text: string): void {
    this.#words[ANSWER_LENGTH_WORD] = this.#bytes.write(text, 'latin1')
    // Publishes the text and its length.
    Atomics.store(this.#words, ANSWER_STATE_WORD, ANSWERED)
    Atomics.notify(this.#words, ANSWER_STATE_WORD)
  }
}
