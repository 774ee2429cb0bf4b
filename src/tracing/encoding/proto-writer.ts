import type { RawBuffer } from '../../transport/memory/raw-buffer.ts'

const FIRST_BYTES = 8192
/** Up to this length a loop over the characters of a text is faster than a call into native code. */
const SHORT_LENGTH = 40
const WIRE_64_BITS = 1
const WIRE_BYTES = 2
const WIRE_32_BITS = 5
const TWO_16 = 2 ** 16
const TWO_32 = 2 ** 32

/**
 * Writes messages of Protocol Buffers one after another into memory that is reused. A field number up to 15 takes one byte.
 * Source: https://protobuf.dev/programming-guides/encoding/
 */
export class ProtoWriter {
  bytes = Buffer.allocUnsafe(FIRST_BYTES) as RawBuffer
  readonly #float = new DataView(new ArrayBuffer(8))
  /** Bytes that are written. */
  length = 0

  clear(): void {
    this.length = 0
  }

  /** A copy of what is written. */
  copy(): Uint8Array {
    return Uint8Array.prototype.slice.call(this.bytes, 0, this.length)
  }

  #room(bytes: number): void {
    if (this.length + bytes <= this.bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, this.length + bytes)) as RawBuffer
    this.bytes.copy(larger, 0, 0, this.length)
    this.bytes = larger
  }

  /** @param value a whole number from 0 to 2^53 */
  #varint(value: number): void {
    let rest = value
    while (rest >= TWO_32) {
      this.bytes[this.length++] = (rest % 128) | 0x80
      rest = Math.floor(rest / 128)
    }
    rest >>>= 0
    while (rest > 127) {
      this.bytes[this.length++] = (rest & 127) | 0x80
      rest >>>= 7
    }
    this.bytes[this.length++] = rest
  }

  #tag(field: number, wire: number): void {
    this.#room(32)
    if (field < 16) this.bytes[this.length++] = (field << 3) | wire
    else this.#varint(field * 8 + wire)
  }

  /** A number of type uint32, uint64, bool or enum; nothing when it is 0. */
  number(field: number, value: number): void {
    if (value === 0) return
    this.#tag(field, 0)
    this.#varint(value)
  }

  /** A number of type int64, written even when it is 0: a member of a oneof. @param value a whole one, from -2^63 to 2^63 */
  int64(field: number, value: number): void {
    this.#tag(field, 0)
    if (value >= 0 && value <= Number.MAX_SAFE_INTEGER) return this.#varint(value)
    let rest = BigInt.asUintN(64, BigInt(value))
    for (; rest > 127n; rest >>= 7n) this.bytes[this.length++] = Number(rest & 127n) | 0x80
    this.bytes[this.length++] = Number(rest)
  }

  bool(field: number, value: boolean): void {
    this.#tag(field, 0)
    this.bytes[this.length++] = value ? 1 : 0
  }

  double(field: number, value: number): void {
    this.#tag(field, WIRE_64_BITS)
    this.#float.setFloat64(0, value, true)
    for (let n = 0; n < 8; n++) this.bytes[this.length++] = this.#float.getUint8(n)
  }

  fixed32(field: number, value: number): void {
    this.#tag(field, WIRE_32_BITS)
    this.#word(value)
  }

  /** A time of type fixed64 in nanoseconds. @param time milliseconds since the epoch, with fractions; an earlier one is taken for 0 */
  nanoseconds(field: number, time: number): void {
    this.#tag(field, WIRE_64_BITS)
    const ms = Math.max(0, time)
    const whole = Math.floor(ms)
    // The product would have more than the 53 bits that are exact, so it is computed in halves. `%` of such numbers is slow.
    const upper = Math.floor(whole / TWO_16)
    const high = upper * 1e6
    const carried = Math.floor(high / TWO_16)
    const low = (high - carried * TWO_16) * TWO_16 + (whole - upper * TWO_16) * 1e6 + Math.round((ms - whole) * 1e6)
    const over = Math.floor(low / TWO_32)
    this.#word(low - over * TWO_32)
    this.#word(carried + over)
  }

  #word(value: number): void {
    const { bytes } = this
    const at = this.length
    const word = value >>> 0
    bytes[at] = word & 255
    bytes[at + 1] = (word >>> 8) & 255
    bytes[at + 2] = (word >>> 16) & 255
    bytes[at + 3] = word >>> 24
    this.length = at + 4
  }

  /** A text; nothing when it is empty. */
  text(field: number, text: string): void {
    if (text !== '') this.member(field, text)
  }

  /** A text, even an empty one: a member of a oneof, or of a list. */
  member(field: number, text: string): void {
    const mark = this.begin(field)
    this.#room(text.length * 3)
    if (text.length > SHORT_LENGTH || !this.#ascii(text)) {
      this.length = mark + this.bytes.utf8Write(text, mark)
    }
    this.end(mark)
  }

  #ascii(text: string): boolean {
    const { bytes } = this
    const at = this.length
    for (let n = 0; n < text.length; n++) {
      const code = text.charCodeAt(n)
      if (code > 127) return false
      bytes[at + n] = code
    }
    this.length = at + text.length
    return true
  }

  /** Bytes that a text has as hexadecimal digits. @param digits an even number of them, up to 60 */
  hex(field: number, text: string, from: number, digits: number): void {
    this.#tag(field, WIRE_BYTES)
    const { bytes } = this
    let at = this.length
    bytes[at++] = digits >> 1
    for (let n = from; n < from + digits; n += 2) {
      bytes[at++] = (NIBBLES[text.charCodeAt(n) & 127]! << 4) | NIBBLES[text.charCodeAt(n + 1) & 127]!
    }
    this.length = at
  }

  /** Fields that are already encoded. */
  raw(fields: Uint8Array): void {
    this.#room(fields.length)
    this.bytes.set(fields, this.length)
    this.length += fields.length
  }

  /** Bytes as a field. */
  blob(field: number, bytes: Uint8Array): void {
    const mark = this.begin(field)
    this.raw(bytes)
    this.end(mark)
  }

  /** A part of other memory as a field. */
  part(field: number, memory: Buffer, from: number, to: number): void {
    this.#tag(field, WIRE_BYTES)
    this.#varint(to - from)
    this.piece(memory, from, to)
  }

  /** Fields that are already encoded, in a part of other memory. */
  piece(memory: Buffer, from: number, to: number): void {
    this.#room(to - from)
    memory.copy(this.bytes, this.length, from, to)
    this.length += to - from
  }

  /** Opens a message inside of this one. @returns the mark that `end` takes */
  begin(field: number): number {
    this.#tag(field, WIRE_BYTES)
    // Most messages are shorter than 128 bytes, so one byte is left for the length. A longer one is moved.
    return ++this.length
  }

  end(mark: number): void {
    const length = this.length - mark
    if (length < 128) {
      this.bytes[mark - 1] = length
      return
    }
    const more = (length < 16_384 ? 2 : length < 2_097_152 ? 3 : 4) - 1
    this.#room(more)
    this.bytes.copyWithin(mark + more, mark, mark + length)
    this.length = mark - 1
    this.#varint(length)
    this.length += length
  }
}

/** The value of a hexadecimal digit, by its character code. */
const NIBBLES = Uint8Array.from({ length: 128 }, (_, code) =>
  Math.max(0, '0123456789abcdef'.indexOf(String.fromCharCode(code).toLowerCase())),
)
