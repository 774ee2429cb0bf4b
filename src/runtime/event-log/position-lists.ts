import type { Queryable, SqlValue } from '../../contracts/db.ts'

/** Positions of one statement: few sizes, so that each is prepared once. A short list is filled up with its last position. */
const LIST_SIZES = [1, 16, 128] as const

/** A statement for positions that it lists: `… WHERE seq IN (…)`, with as many as are to be changed together. */
export class PositionList {
  readonly #texts: ReadonlyMap<number, string>

  /**
   * @param head everything before the list
   * @param first number of the first placeholder in the list: what stands before it has the lower ones
   */
  constructor(head: string, first = 1) {
    const listOf = (size: number): string => Array.from({ length: size }, (_, n) => `$${first + n}`).join(', ')
    this.#texts = new Map(LIST_SIZES.map((size) => [size, `${head} (${listOf(size)})`]))
  }

  /**
   * Sends the statements for all of them, without waiting for one before the next.
   * @param tail follows the list
   * @param before values of the placeholders before the list
   */
  run(to: Queryable, positions: readonly number[], tail = '', before: readonly SqlValue[] = []): Promise<unknown>[] {
    const running: Promise<unknown>[] = []
    for (let from = 0; from < positions.length; ) {
      const left = positions.length - from
      const size = LIST_SIZES.find((each) => each >= left) ?? LIST_SIZES.at(-1)!
      const list: SqlValue[] = [...before, ...positions.slice(from, from + size)]
      while (list.length < before.length + size) list.push(list.at(-1)!)
      running.push(to.execute(this.#texts.get(size)! + tail, list))
      from += size
    }
    return running
  }
}
