/** Texts of a parameter that `textArray` has made. */
export function textsOf(array: Buffer): (string | null)[] {
  const texts: (string | null)[] = []
  for (let at = 20, left = array.readInt32BE(12); left > 0; left--) {
    const length = array.readInt32BE(at)
    texts.push(length < 0 ? null : array.toString('utf8', at + 4, at + 4 + length))
    at += 4 + Math.max(0, length)
  }
  return texts
}
