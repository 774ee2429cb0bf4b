import type { RawBuffer } from '../memory/raw-buffer.ts'

/** Where a frame's body is written to: the ring itself, or a buffer of its own. */
export interface FrameTarget {
  readonly bytes: RawBuffer
  readonly words: Int32Array
}

export const utf8MaxBytes = (text: string): number => text.length * 3
