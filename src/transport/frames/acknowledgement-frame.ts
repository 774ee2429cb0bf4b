import type { FrameBuffer } from './frame-buffer.ts'

// DELIVERED: the ids of deliveries that were handled, one word each.

export const acknowledgementBytes = (count: number): number => count * Int32Array.BYTES_PER_ELEMENT

/** Writes `count` ids, the first of them `ids[from]`. */
export function writeAcknowledgements(
  { words }: FrameBuffer,
  at: number,
  ids: readonly number[],
  from: number,
  count: number,
): void {
  const word = at >> 2
  for (let n = 0; n < count; n++) words[word + n] = ids[from + n]!
}

/** Calls `visit` with each id of the frame. */
export function readAcknowledgements(
  { words }: FrameBuffer,
  at: number,
  length: number,
  visit: (deliveryId: number) => void,
): void {
  const word = at >> 2
  const count = length / Int32Array.BYTES_PER_ELEMENT
  for (let n = 0; n < count; n++) visit(words[word + n]!)
}
