/**
 * Computes for a number of iterations and not for a time, so that a handler that loses its core has the same work left.
 * It uses only 32-bit integers: with a wider first value V8's code is three times slower where it inlines this, which differs between the sides.
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
