/**
 * How far a list has grown that the primary keeps: other threads see here that their copy is behind, without asking.
 *
 * Memory (Int32 words):
 *   0  GENERATION  0 until the list is there. The primary alone sets it, after the list has changed; it only grows.
 */
const GENERATION = 0

export const GENERATION_BYTES = Int32Array.BYTES_PER_ELEMENT

export class Generation {
  readonly #words: Int32Array

  /** @param memory GENERATION_BYTES, shared by all threads */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
  }

  get current(): number {
    return Atomics.load(this.#words, GENERATION)
  }

  set current(generation: number) {
    Atomics.store(this.#words, GENERATION, generation)
  }
}
