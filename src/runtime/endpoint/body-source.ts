/** The body of an answer that is sent in pieces. Its holder closes it. */
export interface BodySource {
  /** -1 for a body whose length is not known before its end. */
  readonly lengthBytes: number
  /** The next piece, of at most PIECE_BYTES; null at the end. @throws when there is no next one although the body has not ended */
  next(): Promise<Uint8Array | null>
  /** Nobody wants a further piece. May be called at any time, and again. */
  close(): Promise<void> | void
}
