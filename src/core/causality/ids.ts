// Ids in the order of time, random digits, timestamps.
import { randomFillSync } from 'node:crypto'

let lastStampMs = Number.NaN
let lastText = ''

/** `YYYY-MM-DDTHH:mm:ss.sssZ`. The last text is kept: formatting is slow, and under load the same millisecond is formatted a hundred times. */
export function isoTimestamp(epochMs: number): string {
  const ms = Math.trunc(epochMs)
  if (ms !== lastStampMs) {
    lastStampMs = ms
    lastText = new Date(ms).toISOString()
  }
  return lastText
}

const POOL_BYTES = 16_384
const words = new Uint32Array(POOL_BYTES / 4)
let wordsUsed = words.length
let digits = ''
let digitsUsed = 0
/** What follows the counter in an id, cut from a long text: 16 digits each, of which the first tells the variant. */
let tails = ''
let tailsUsed = 0
const TAIL_DIGITS = 16
/** The version and the counter. */
const COUNTERS: readonly string[] = Array.from({ length: 0x1000 }, (_, count) => (0x7000 | count).toString(16))

let lastMs = 0
let lastMsHex = ''
let counter = 0

/**
 * A UUIDv7 as 32 hexadecimal digits without dashes. Ids are ordered by time; those of one thread also within a millisecond.
 * Source: RFC 9562, section 5.7, with `rand_a` as a counter (section 6.2, method 1). Of three texts: V8 joins each part again where the id is used.
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
  if (tailsUsed + TAIL_DIGITS > tails.length) {
    tails = newTails()
    tailsUsed = 0
  }
  tailsUsed += TAIL_DIGITS
  return lastMsHex + COUNTERS[counter]! + tails.slice(tailsUsed - TAIL_DIGITS, tailsUsed)
}

function newTails(): string {
  const bytes = randomFillSync(Buffer.alloc(POOL_BYTES))
  for (let at = 0; at < POOL_BYTES; at += TAIL_DIGITS / 2) bytes[at] = 0x80 | (bytes[at]! & 0x3f)
  return bytes.toString('hex')
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
