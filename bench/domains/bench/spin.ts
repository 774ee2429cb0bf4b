/** Computes for a time that depends on nothing but the iterations: a handler that loses its core is not done sooner. */
export function spin(iterations: number): number {
  let word = 0x9e3779b9
  for (let i = 0; i < iterations; i++) {
    word ^= word << 13
    word ^= word >>> 17
    word ^= word << 5
  }
  return word >>> 0
}
