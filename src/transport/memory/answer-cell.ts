/** Answer cell: word 0 ANSWERED (the question's number plus one), word 1 LENGTH, then the text. */
const ANSWERED_WORD = 0
const ANSWER_LENGTH_WORD = 1
const ANSWER_TEXT_BYTE = 8
const ANSWER_BYTES = 128

export function createAnswerCell(): SharedArrayBuffer {
  return new SharedArrayBuffer(ANSWER_BYTES)
}

/**
 * One short text from the primary to a lane that waits for it, blocked. Only for what a handler reads synchronously and hardly ever:
 * the primary never waits for a lane, so this cannot lock up.
 * Questions have numbers: the answer to one that was given up is not taken for the next one's. Answers come in the order of the questions.
 */
export class AnswerCell {
  readonly #words: Int32Array
  readonly #bytes: Buffer

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
    this.#bytes = Buffer.from(memory, ANSWER_TEXT_BYTE)
  }

  /** The lane: the answer to its question, or null when none came in time. */
  wait(question: number, timeoutMs: number): string | null {
    const wanted = (question + 1) | 0
    const deadlineMs = performance.now() + timeoutMs
    for (;;) {
      // Pairs with the store in `answer`.
      const answered = Atomics.load(this.#words, ANSWERED_WORD)
      if (answered === wanted) return this.#bytes.toString('latin1', 0, this.#words[ANSWER_LENGTH_WORD])
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0 || Atomics.wait(this.#words, ANSWERED_WORD, answered, leftMs) === 'timed-out') return null
    }
  }

  /** The primary. */
  answer(question: number, text: string): void {
    this.#words[ANSWER_LENGTH_WORD] = this.#bytes.write(text, 'latin1')
    // Publishes the text and its length.
    Atomics.store(this.#words, ANSWERED_WORD, (question + 1) | 0)
    Atomics.notify(this.#words, ANSWERED_WORD)
  }
}
