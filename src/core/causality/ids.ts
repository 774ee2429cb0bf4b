import { randomFillSync } from 'node:crypto'

const HEX: string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const POOL_BYTES = 16_384
const pool = Buffer.alloc(POOL_BYTES)
let used = POOL_BYTES
const words = new Uint32Array(POOL_BYTES / 4)
let wordsUsed = words.length
let digits = ''
let digitsUsed = 0

let lastMs = 0
let lastMsHex = ''
let counter = 0

/**
 * A UUIDv7 as 32 hexadecimal digits without dashes. Ids are ordered by time; those of one thread also within a millisecond.
 * Source: RFC 9562, section 5.7, with `rand_a` as a counter (section 6.2, method 1).
 */
export function timeOrderedId(): string {
  const nowMs = Date.now()
  if (nowMs > lastMs) {
    lastMs = nowMs
    lastMsHex = nowMs.toString(16).padStart(12, '0')
    counter = 0
  } else if (++counter > 0xfff) {
    // More than 4096 ids in one millisecond, or a clock that went back: use the next millisecond, so that the order holds.
    lastMs++
    lastMsHex = lastMs.toString(16).padStart(12, '0')
    counter = 0
  }
  if (used + 8 > POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  const at = used
  used += 8
  return (
    lastMsHex +
    HEX[0x70 | (counter >>> 8)]! +
    HEX[counter & 0xff]! +
    HEX[0x80 | (pool[at]! & 0x3f)]! +
    HEX[pool[at + 1]!]! +
    HEX[pool[at + 2]!]! +
    HEX[pool[at + 3]!]! +
    HEX[pool[at + 4]!]! +
    HEX[pool[at + 5]!]! +
    HEX[pool[at + 6]!]! +
    HEX[pool[at + 7]!]!
  )
}

/** `evt_` and a time-ordered id. */
export const makeEventId = (): string => `evt_${timeOrderedId()}`

/** A random whole number below 2^32. */
export function randomWord(): number {
  if (wordsUsed === words.length) {
    randomFillSync(words)
    wordsUsed = 0
  }
  return words[wordsUsed++]!
}

/** Random bytes as hexadecimal digits, at most 64 bytes. They are cut from a long text of random digits: a quarter of the cost of converting byte by byte. */
export function randomHex(byteCount: number): string {
  const length = byteCount * 2
  if (digitsUsed + length > digits.length) {
    digits = randomFillSync(Buffer.alloc(POOL_BYTES)).toString('hex')
    digitsUsed = 0
  }
  digitsUsed += length
  return digits.slice(digitsUsed - length, digitsUsed)
}
