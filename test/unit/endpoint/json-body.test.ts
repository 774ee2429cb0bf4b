import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyScanner, refuseForbiddenKeys } from '../../../src/runtime/endpoint/input/key-scanner.ts'
import { parseJsonBody } from '../../../src/runtime/endpoint/input/parse.ts'

const parse = (text: string, maxKeys?: number): unknown => parseJsonBody(Buffer.from(text), maxKeys)

const EXACT =
  `0 -0 1 123456789012345 9007199254740991 -9007199254740992 9007199254740994 1152921504606846976 100000000000000000000
  123456789012345680000 1e21 1e300 1.7976931348623157e308 5e-324 4.9E-324 0.1 0.30000000000000004 0.10000000000000001
  0.1000000000000000055511151231257827 12345678901234567e1 1.50000000000000000000 000`.split(/\s+/)
const INEXACT = `9007199254740993 -9007199254740993 12345678901234567890 12345678901234567.89 0.1234567890123456789
  1e400 -1e400 1e-400 18446744073709551615 3.14159265358979323846264338327950288`.split(/\s+/)

test('numbers of JSON: exact ones are read, whatever would lose digits is refused', () => {
  for (const number of EXACT.filter((text) => text !== '000'))
    if (number === '12345678901234567e1') assert.throws(() => parse(number), /would lose digits/)
    else assert.equal(parse(`[${number}]`)?.toString(), String(Number(number)), number)
  for (const number of INEXACT)
    for (const text of [number, `[${number}]`, `{"a":"\\"1","b":[1,${number} ]}`])
      assert.throws(
        () => parse(text),
        { code: 'HTTP_BAD_REQUEST', message: /would lose digits: send it as text/ },
        text,
      )
  assert.deepEqual(parse('{"card":"12345678901234567890","\\"9007199254740993":"1e400"}'), {
    card: '12345678901234567890',
    '"9007199254740993': '1e400',
  })
})

test('a number as long as a body is read in one go', () => {
  const zeros = '0'.repeat(500_000)
  for (const number of [`1${zeros}1`, `0.${zeros}1${zeros}1`, `1.${zeros}1`])
    assert.throws(() => parse(number), /would lose digits/)
  assert.deepEqual(parse(`[1.${zeros}]`), [1])
})

test('keys of JSON: so many at most, wherever they are', () => {
  for (const text of [
    '{"a":1,"A":1}',
    '[{"a":1},{"a":2}]',
    '{"a:b":":","\\\\":"\\":","c\\"":{}}',
    `["${':'.repeat(100)}"]`,
  ])
    assert.deepEqual(parse(text, 3), JSON.parse(text))
  for (const text of ['{"a":1,"b":2,"c":3,"d":4}', '[{"a":1},{"a":1},{"a":1},{"a":1}]', '{"a":{"b":{"c":{"d":{}}}}}'])
    assert.throws(() => parse(text, 3), { code: 'HTTP_BODY_TOO_LARGE', message: 'The body has more than 3 keys' })
  const smallest = (keys: number): string => `{${'"":1,'.repeat(keys - 1)}"":1}`
  parse(smallest(1000), 1000)
  assert.throws(() => parse(smallest(1001), 1000), /more than 1000 keys/)
})

const FORBIDDEN = [
  '{"__proto__":1}',
  '[{"a":{"constructor" :{}}}]',
  '{"\\u005f_proto__"\n:1}',
  '{"a":"\\\\","prototype":1}',
  '{"proto\\u0074ype":1}',
]
const HARMLESS = [
  '{"a":"__proto__"}',
  '["constructor","prototype"]',
  '{"x__proto__":1}',
  '{"a\\"":"\\"__proto__\\":1"}',
  '{"\\u0061":1}',
  'not "__proto__" at all',
  '',
]

test('a key that could reach a prototype is found in JSON that a handler parses, however it comes', () => {
  const inPieces = (text: string, bytes: number): void => {
    const scanner = new KeyScanner()
    const body = Buffer.from(text)
    for (let at = 0; at < body.byteLength; at += bytes) scanner.push(body.subarray(at, at + bytes))
  }
  for (const text of FORBIDDEN) {
    assert.throws(
      () => refuseForbiddenKeys(Buffer.from(text)),
      { code: 'HTTP_BAD_REQUEST', message: /forbidden key/ },
      text,
    )
    for (const bytes of [1, 2, 5, 100]) assert.throws(() => inPieces(text, bytes), { code: 'HTTP_BAD_REQUEST' }, text)
  }
  for (const text of HARMLESS) {
    refuseForbiddenKeys(Buffer.from(text))
    for (const bytes of [1, 2, 5, 100]) inPieces(text, bytes)
  }
})
