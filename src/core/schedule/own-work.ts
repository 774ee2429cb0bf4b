// Says that the runtime itself is at work for a client: it parses or checks a body, or writes an answer. No plugin is blamed for that time.

let words: Int32Array = new Int32Array(1)
let word = 0

/** From now on it is told there. @param at the word; it is 1 while the runtime is at work */
export function tellOwnWork(memory: Int32Array, at: number): void {
  words = memory
  word = at
}

/** Does a part of the runtime's own work. */
export function ownWork<A, B, T>(work: (a: A, b: B) => T, a: A, b: B): T {
  // Plain writes: whoever reads them looks long after.
  words[word] = 1
  try {
    return work(a, b)
  } finally {
    words[word] = 0
  }
}
