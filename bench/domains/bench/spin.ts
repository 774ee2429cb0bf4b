/**
 * Computes for a time that depends on nothing but the iterations: a handler that loses its core is not done sooner.
 * All in 32-bit integers: with a wider first value V8 compiles it three times slower wherever it inlines it, and the sides differ in that.
 */
export function spin(iterations: number): number {
  const rounds = iterations | 0
  let word = 0x1e3779b9
  for (let i = 0; i < rounds; i++) {
    word ^= word << 13
    word ^= word >>> 17
    word ^= word << 5
  }
  return word >>> 0
}
