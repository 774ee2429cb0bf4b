// A parameter of type `text[]`.

/** Dimensions, a flag for nulls, element type, length and lower bound. */
const HEAD_BYTES = 20
/** Object id of the type `text`. */
const TEXT = 25

/**
 * Returns texts in the binary form of PostgreSQL's arrays (`array_recv` in arrayfuncs.c): unlike the text form it needs no quoting, and the server
 * reads it faster than as many parameters.
 * @param texts well-formed, without NUL
 */
export function textArray(texts: readonly (string | null)[]): Buffer {
  let bytes = HEAD_BYTES
  for (const text of texts) bytes += 4 + (text === null ? 0 : Buffer.byteLength(text))
  const array = Buffer.allocUnsafe(bytes)
  array.writeInt32BE(1, 0)
  array.writeInt32BE(texts.includes(null) ? 1 : 0, 4)
  array.writeInt32BE(TEXT, 8)
  array.writeInt32BE(texts.length, 12)
  array.writeInt32BE(1, 16)
  let at = HEAD_BYTES
  for (const text of texts) {
    const length = text === null ? 0 : array.write(text, at + 4)
    array.writeInt32BE(text === null ? -1 : length, at)
    at += 4 + length
  }
  return array
}
