// A frame while its body is written.
import type { Kind } from '../frames/frames.ts'
import type { FrameMemory, RawBuffer } from '../memory/spsc-ring.ts'

/**
 * The frame that an outbox has begun. Write its body at `at`, in `bytes`, `words` and `doubles` (memory of the ring, or a buffer of its own when
 * the body is large or the ring is full), then send it. An outbox has only this one: it is written and sent before the next one is begun.
 */
export class Frame implements FrameMemory {
  bytes!: RawBuffer
  words!: Int32Array
  doubles!: Float64Array
  /** Where the body begins; -1 while none is begun. */
  at = -1
  kind: Kind = 0 as Kind
  id = 0
  readonly #post: (bodyBytes: number) => number

  constructor(post: (bodyBytes: number) => number) {
    this.#post = post
  }

  use({ bytes, words, doubles }: FrameMemory): void {
    this.bytes = bytes
    this.words = words
    this.doubles = doubles
  }

  /** @returns the frame's position in the ring, or -1 when it waits or its body goes by the port */
  send(bodyBytes: number): number {
    if (this.at < 0) throw new Error('A frame is sent twice, or was not begun')
    return this.#post(bodyBytes)
  }
}
