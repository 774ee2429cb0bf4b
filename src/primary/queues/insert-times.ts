// When stored rows were inserted, as far as their numbers tell.

/** Samples that are kept. */
const KEPT = 512

/**
 * A row has its number from its insert. So it is younger than each time at which all numbers were lower. An event that was delayed
 * for a day gets a new number when it is due: it has waited since then.
 */
export class InsertTimes {
  #samples: { readonly lastSeq: number; readonly atMs: number }[] = []

  /** @param lastSeq the highest number of a row at this time */
  add(lastSeq: number, atMs: number): void {
    if (lastSeq <= (this.#samples.at(-1)?.lastSeq ?? -1)) return
    this.#samples.push({ lastSeq, atMs })
    // Older times are known less exactly.
    if (this.#samples.length > KEPT) this.#samples = this.#samples.filter((_, n) => n % 2 === 0 || n > KEPT / 2)
  }

  /** @returns a time before which the row was not there, milliseconds since the epoch; 0: unknown */
  notBefore(seq: number): number {
    return this.#samples.findLast(({ lastSeq }) => lastSeq < seq)?.atMs ?? 0
  }
}
