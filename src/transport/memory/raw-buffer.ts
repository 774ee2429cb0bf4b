/**
 * Node's Buffer with the fixed-encoding methods that it has on its prototype but not in its types.
 * They skip the encoding's look-up of `write` and `toString`, which counts at a hundred thousand frames a second.
 */
export interface RawBuffer extends Buffer {
  latin1Write(text: string, offset: number, maxBytes?: number): number
  utf8Write(text: string, offset: number, maxBytes?: number): number
  latin1Slice(from: number, to: number): string
  utf8Slice(from: number, to: number): string
}
