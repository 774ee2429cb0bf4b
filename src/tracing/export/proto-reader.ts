const WIRE_VARINT = 0
const WIRE_64_BITS = 1
const WIRE_BYTES = 2
const WIRE_32_BITS = 5

/** Reads a message of Protocol Buffers field by field. Source: https://protobuf.dev/programming-guides/encoding/ */
export class ProtoReader {
  readonly #bytes: Uint8Array
  #at = 0
  #wire = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** The number of the next field; 0 at the end. The value before has to be read, or skipped. @throws RangeError for what is no message */
  next(): number {
    if (this.#at >= this.#bytes.length) return 0
    const tag = Number(this.#varint())
    this.#wire = tag & 7
    return tag >>> 3
  }

  #varint(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined) break
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
    throw new RangeError('The message breaks off')
  }

  /** A whole number: a varint with its sign, or fixed. */
  number(): number {
    if (this.#wire === WIRE_VARINT) return Number(BigInt.asIntN(64, this.#varint()))
    const view = this.#view(this.#wire === WIRE_32_BITS ? 4 : 8)
    return this.#wire === WIRE_32_BITS ? view.getUint32(0, true) : Number(view.getBigUint64(0, true))
  }

  double(): number {
    return this.#view(8).getFloat64(0, true)
  }

  /** Nanoseconds since the epoch as milliseconds. */
  milliseconds(): number {
    const nanoseconds = this.#view(8).getBigUint64(0, true)
    return Number(nanoseconds / 1_000_000n) + Number(nanoseconds % 1_000_000n) / 1e6
  }

  #view(bytes: number): DataView {
    const part = this.#take(bytes)
    return new DataView(part.buffer, part.byteOffset, bytes)
  }

  bytes(): Uint8Array {
    return this.#take(Number(this.#varint()))
  }

  #take(length: number): Uint8Array {
    const from = this.#at
    if (from + length > this.#bytes.length) throw new RangeError('The message breaks off')
    this.#at += length
    return this.#bytes.subarray(from, this.#at)
  }

  text(): string {
    return Buffer.from(this.bytes()).toString('utf8')
  }

  hex(): string {
    return Buffer.from(this.bytes()).toString('hex')
  }

  skip(): void {
    if (this.#wire === WIRE_VARINT) this.#varint()
    else if (this.#wire === WIRE_BYTES) this.bytes()
    else if (this.#wire === WIRE_64_BITS || this.#wire === WIRE_32_BITS) this.#take(this.#wire === WIRE_64_BITS ? 8 : 4)
    else throw new RangeError(`Wire type ${this.#wire}`)
  }
}
