import type { FileHandle } from 'node:fs/promises'
import type { BodySource } from './body-source.ts'

/** Bytes of a piece of a body at most. Files of at most this are sent in one. */
export const PIECE_BYTES = 60_000
/** Bytes of a larger body that are on their way at a time: it is read as fast as the client reads. */
export const WINDOW_BYTES = 240_000

/** A part of an open file that is the body of an answer. Its holder closes it. */
export class FileBody implements BodySource {
  readonly lengthBytes: number
  readonly #handle: FileHandle
  #at: number
  #left: number

  constructor(handle: FileHandle, fromByte: number, lengthBytes: number) {
    this.#handle = handle
    this.lengthBytes = lengthBytes
    this.#at = fromByte
    this.#left = lengthBytes
  }

  /** The next piece; null at the end. @throws when the file has become shorter */
  async next(): Promise<Uint8Array | null> {
    if (this.#left === 0) return null
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, this.#left))
    const { bytesRead } = await this.#handle.read(piece, 0, piece.byteLength, this.#at)
    if (bytesRead === 0) throw new Error('The file has become shorter while it was sent')
    this.#at += bytesRead
    this.#left -= bytesRead
    return piece.subarray(0, bytesRead)
  }

  async close(): Promise<void> {
    await this.#handle.close()
  }
}
