/**
 * Why no thread can write to the embedded database at present.
 *
 * Memory (Int32 words):
 *   0  FAULT   0 while writes succeed. Any thread sets it when a write of its own fails; the primary alone clears it, after a write of
 *              its own succeeded. A lost race costs one second: the primary looks again.
 */
const FAULT = 0

/** `reserve`: the disk is full, and the room that was kept for deletes is given away. */
export const WRITE_FAULTS = ['none', 'full', 'reserve', 'failed', 'locked', 'replaced'] as const
export type WriteFaultKind = (typeof WRITE_FAULTS)[number]

export class WriteFault {
  readonly #words: Int32Array

  /** @param memory at least 4 bytes, shared by all threads */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
  }

  get kind(): WriteFaultKind {
    return WRITE_FAULTS[Atomics.load(this.#words, FAULT)]!
  }

  set kind(kind: WriteFaultKind) {
    Atomics.store(this.#words, FAULT, WRITE_FAULTS.indexOf(kind))
  }
}
