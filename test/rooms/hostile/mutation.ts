import type { Random } from '../../support/random.ts'
import { makeRequest, makeToken } from './valid-requests.ts'

type Mutate = (random: Random, bytes: Buffer, other: Buffer) => Buffer

const MAX_REPEAT = 300
/** What parsers are fond of stumbling over. */
const TITBITS = [
  ...':;,"%?#{[}',
  ...['\r\n', '\n', '\r', '\0', ' ', '\t', '%00', '\xff', '\xc3\x28', '\x7f', '..', '//', '\\u0000', '\\ud800'],
  ...['-1', '0', '+5', '0x10', '1e9', '4294967296', '99999999999999999999', 'NaN', 'null'],
  ...['content-length: 5\r\n', 'transfer-encoding: chunked\r\n', 'host: other\r\n', 'expect: 200-ok\r\n', ': x\r\n'],
  ...['connection: close\r\n', 'content-encoding: gzip\r\n', '\r\n\r\n', '0\r\n\r\n', 'HTTP/1.1', 'HTTP/1.0', 'GET / '],
].map((text) => Buffer.from(text, 'latin1'))

/** Each takes bytes and gives others. None is harmful by itself: most make a request that is merely wrong. */
export const MUTATIONS: Readonly<Record<string, Mutate>> = {
  flipBit: (random, bytes) => replace(bytes, random.below(bytes.length), (byte) => byte ^ (1 << random.below(8))),
  setByte: (random, bytes) => replace(bytes, random.below(bytes.length), () => random.below(256)),
  insertBytes: (random, bytes) => insert(bytes, random.below(bytes.length + 1), random.bytes(1 + random.below(8))),
  insertTitbit: (random, bytes) => insert(bytes, random.below(bytes.length + 1), random.pick(TITBITS)),
  deleteRange: (random, bytes) => {
    const at = random.below(bytes.length)
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random.below(12))])
  },
  repeatRange: (random, bytes) => {
    const at = random.below(bytes.length)
    const range = bytes.subarray(at, at + 1 + random.below(20))
    return insert(bytes, at, Buffer.concat(Array.from({ length: 1 + random.below(MAX_REPEAT) }, () => range)))
  },
  duplicateLine: (random, bytes) => {
    const lines = linesOf(bytes)
    const line = random.pick(lines)
    lines.splice(random.below(lines.length + 1), 0, line)
    return Buffer.concat(lines)
  },
  dropLine: (random, bytes) => {
    const lines = linesOf(bytes)
    lines.splice(random.below(lines.length), 1)
    return Buffer.concat(lines)
  },
  swapLines: (random, bytes) => {
    const lines = linesOf(bytes)
    const [one, two] = [random.below(lines.length), random.below(lines.length)]
    ;[lines[one], lines[two]] = [lines[two]!, lines[one]!]
    return Buffer.concat(lines)
  },
  changeNumber: (random, bytes) => {
    const text = bytes.toString('latin1')
    const numbers = [...text.matchAll(/\d+/g)]
    if (numbers.length === 0) return bytes
    const { 0: digits, index } = random.pick(numbers)
    const changed = [String(Number(digits) + 1), `${digits}0`, `${digits},${digits}`]
    const other = random.pick(['0', '-1', '1', '007', '99999', '1e5', ...changed])
    return Buffer.from(text.slice(0, index) + other + text.slice(index + digits.length), 'latin1')
  },
  changeCase: (random, bytes) => {
    const at = random.below(bytes.length)
    const range = bytes.toString('latin1', at, at + 20)
    const other = random.chance(0.5) ? range.toUpperCase() : range.toLowerCase()
    return Buffer.concat([bytes.subarray(0, at), Buffer.from(other, 'latin1'), bytes.subarray(at + 20)])
  },
  bareLineFeeds: (_random, bytes) => Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1'),
  splice: (random, bytes, other) =>
    Buffer.concat([bytes.subarray(0, random.below(bytes.length + 1)), other.subarray(random.below(other.length + 1))]),
  cut: (random, bytes) => bytes.subarray(0, random.below(bytes.length)),
}

/** Up to four mutations, one on top of the other. */
export function mutate(random: Random, bytes: Buffer, other: Buffer): Buffer {
  let mutated = bytes
  for (let count = 1 + random.below(4); count > 0 && mutated.length > 0; count--) {
    mutated = random.pick(Object.values(MUTATIONS))(random, mutated, other)
  }
  return mutated
}

/** Everything that one connection does. */
export interface Plan {
  /** What its requests are marked with. */
  tokens: string[]
  /** Sent one after the other, with a pause between them. */
  writes: Buffer[]
  /** What happens when all is sent. */
  ending: 'wait' | 'halfClose' | 'drop' | 'reset'
}

/** Up to three requests, mutated more often than not, all at once or cut at any byte. */
export function makePlan(random: Random): Plan {
  const tokens: string[] = []
  const request = (): Buffer => {
    const token = makeToken(random)
    tokens.push(token)
    return makeRequest(random, token)
  }
  const parts: Buffer[] = []
  for (let count = random.pick([1, 1, 1, 2, 3]); count > 0; count--) {
    const bytes = request()
    parts.push(random.chance(0.8) ? mutate(random, bytes, request()) : bytes)
  }
  const writes = random.chance(0.5) ? cutUp(random, Buffer.concat(parts)) : parts
  return {
    tokens,
    writes,
    ending: random.pick(['wait', 'wait', 'wait', 'wait', 'halfClose', 'drop', 'reset'] as const),
  }
}

function cutUp(random: Random, bytes: Buffer): Buffer[] {
  const places = Array.from({ length: random.below(4) }, () => random.below(bytes.length + 1)).sort((a, b) => a - b)
  return [...places, bytes.length].map((end, n) => bytes.subarray(places[n - 1] ?? 0, end))
}

function replace(bytes: Buffer, at: number, change: (byte: number) => number): Buffer {
  const copy = Buffer.from(bytes)
  copy[at] = change(copy[at]!)
  return copy
}

function insert(bytes: Buffer, at: number, inserted: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at)])
}

/** With their line ends. */
function linesOf(bytes: Buffer): Buffer[] {
  return bytes
    .toString('latin1')
    .split(/(?<=\n)/)
    .map((line) => Buffer.from(line, 'latin1'))
}
