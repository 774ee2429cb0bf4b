/** Size of the pieces of memory into which spans are copied, bytes. */
const PIECE_BYTES = 256 << 10
/** Pieces without a span that are kept for the next ones. */
const SPARE_MAX = 4

/** A piece of memory with spans that wait. */
export interface Piece {
  readonly memory: Buffer
  /** Spans in it that were neither sent nor dropped. */
  waiting: number
}

/**
 * Memory into which spans are copied. A buffer for each span would keep the garbage collector busy, and so would ever new pieces: memory
 * outside of the heap counts when V8 decides that it is time for a whole collection. A piece whose spans are gone is used again.
 */
export class SpanMemory {
  /** The one that is filled is the last. */
  readonly #pieces: Piece[] = []
  #used = 0

  /** Where there is room for a span, which belongs to the piece until `release`. */
  take(length: number): { piece: Piece; from: number } {
    let piece = this.#pieces.at(-1)
    if (piece === undefined || this.#used + length > piece.memory.length) {
      piece = this.#next(length)
      this.#used = 0
    }
    piece.waiting++
    const from = this.#used
    this.#used += length
    return { piece, from }
  }

  #next(length: number): Piece {
    const at = this.#pieces.findIndex(({ memory, waiting }) => waiting === 0 && memory.length >= length)
    const [found] = at < 0 ? [] : this.#pieces.splice(at, 1)
    const piece = found ?? { memory: Buffer.allocUnsafeSlow(Math.max(PIECE_BYTES, length)), waiting: 0 }
    this.#forgetSpare()
    this.#pieces.push(piece)
    return piece
  }

  #forgetSpare(): void {
    for (let spare = this.#pieces.filter(({ waiting }) => waiting === 0).length; spare > SPARE_MAX; spare--) {
      this.#pieces.splice(
        this.#pieces.findIndex(({ waiting }) => waiting === 0),
        1,
      )
    }
  }
}

/** A span was sent or dropped. */
export function release({ piece }: { readonly piece: Piece }): void {
  piece.waiting--
}
