import type { RawBuffer } from '../memory/raw-buffer.ts'

/** The memory that a frame's body is written to and read from: the ring itself, or a buffer of its own. */
export interface FrameBuffer {
  readonly bytes: RawBuffer
  readonly words: Int32Array
}

/** For frames that hold 64-bit numbers. */
export interface WideFrameBuffer extends FrameBuffer {
  readonly doubles: Float64Array
}

export const utf8MaxBytes = (text: string): number => text.length * 3
