import { SEED, seededRandom } from '../../support/random.ts'

const DEPTH_MAX = 64
const deep = (open: string, close: string, levels: number): string => open.repeat(levels) + close.repeat(levels)
const words = (text: string): string[] => text.split(' ')

/** Each kind of JSON, above all what JavaScript reads in a way of its own: numbers, halves of characters, keys that it knows. */
const WRITTEN: readonly string[] = [
  ...words(
    'null true false 0 -0 1 -1 0.5 -0.5e+3 1E5 1e-5 20e1 123.456789 9007199254740992 5e-324 1.7976931348623157e308',
  ),
  ...words(
    String.raw`"" "a" "\"" "\\" "\/" "\b\f\n\r\t" "\u0000" "\uAbCd" "\ud834\udd1e" "\ud800" "\udc00\ud800" "\ud800a"`,
  ),
  ...words(String.raw`"\uffff" "\ufeff" "\u2028\u2029" "é€𝄞"`),
  ...['"\x7f"', '"\u2028\u2029"', '"\ufeff"', '"\u202e"', '" "'],
  ...['[]', '[ ]', '[[],[[]]]', '[1,null,"a",{}]', '[\n1\r,\t2 ]', ' [] ', '\t\r\n 1 \n'],
  ...words(String.raw`{} {"a":1} {"a":{"b":{}}} {"":1} {"a":1,"b":2} {"\u0000":1} {"é":1} {"\ud800":1} {"1":1,"0":2}`),
  ...words(String.raw`{"a":1,"a":2} {"a":{},"a":[]} {"a":1,"\u0061":2} {"hasOwnProperty":1} {"toString":1} {"then":1}`),
  ...words('{"toJSON":1} {"length":-1} {"valueOf":null} {"__defineGetter__":1} {"success":false} {"id":{"$gt":""}}'),
]

/** What JSON is made of, and what people and other languages put between. */
const PIECES: readonly string[] = [
  ...`{}[]:,"'\`\\/+-._;#()<>*&%@$?!=01a`,
  ...words(
    String.raw`\u \u12 \u{41} \x00 \' \0 00 0x 1e .e 1. // /**/ NaN Infinity undefined True None nul ,, {} [] "" “ １ ٣ ∞ é`,
  ),
  ...['\0', '\x01', '\b', '\t', '\n', '\v', '\f', '\r', '\x1b', '\x1f', ' ', '--cut\r\n'],
  ...['\u00a0', '\u180e', '\u200b', '\u2028', '\u2029', '\u2060', '\u3000', '\ufeff'],
]

/** Texts with each of the pieces in front, behind, at a place of chance and instead of what stands there; and such as end too early. */
function mutated(): string[] {
  const random = seededRandom(SEED)
  const pieces = PIECES.flatMap((piece) => {
    const text = WRITTEN[random(WRITTEN.length)]!
    const at = random(text.length)
    return [
      piece + text,
      text + piece,
      text.slice(0, at) + piece + text.slice(at),
      text.slice(0, at) + piece + text.slice(at + 1),
    ]
  })
  const whole = '{"a":[-1.5e3,"\\u00e9"],"b":null}'
  const cut = Array.from(whole.slice(1), (_, n) => whole.slice(0, n + 1))
  return [...PIECES, ...pieces, ...cut]
}

const sent = (text: string): string => Buffer.from(text).toString()

/** Whether `JSON.parse` takes the bytes of a text. */
function isJson(text: string): boolean {
  try {
    JSON.parse(sent(text))
    return true
  } catch {
    return false
  }
}

/** A mutation may give a number digits that JavaScript loses: test/unit/endpoint/json-body.test.ts has those. */
const MAY_LOSE_DIGITS = /\d[\d.]{15}|\de[+-]?\d{3}/i
const MUTATED = mutated().filter((text) => !MAY_LOSE_DIGITS.test(text))

/** The handler gets them as JavaScript reads them. */
export const VALID: readonly string[] = [
  ...WRITTEN,
  ...MUTATED.filter(isJson),
  deep('[', ']', DEPTH_MAX),
  deep('{"a":', '}', DEPTH_MAX - 1).replace('}', '{}}'),
  `[${'1,'.repeat(50_000)}1]`,
  `"${'a'.repeat(500_000)}"`,
  `{"${'k'.repeat(100_000)}":1}`,
  `${' '.repeat(100_000)}1`,
]

export const INVALID: readonly string[] = [
  ...MUTATED.filter((text) => !isJson(text)),
  ...['[', '{"a":', '[{"a":', '"'].map((open) => open.repeat(100_000)),
  deep('[', ']', 100_000).slice(0, -1),
]

/** Not UTF-8: bare continuation bytes, overlong forms, surrogates, beyond U+10FFFF, cut off, other encodings. */
export const NOT_UTF8: readonly Buffer[] = [
  ...words('80 bf c080 c0af c1bf e08080 e09fbf f0808080 f08fbfbf f888808080'),
  ...words('eda080 edbfbf eda080edb080 f4908080 f5808080 fc8480808080 fe ff feff fffe'),
  ...words('c3 e282 f09d84 c328 e228a1 e28228 f0288cbc e9 e4f6fc 93fa967b'),
]
  .map((hex) => Buffer.from(hex, 'hex').toString('latin1'))
  .flatMap((raw) => [`"${raw}"`, `{"${raw}":1}`, `[1]${raw}`])
  .concat(
    '\0\0\0{\0\0\0}',
    '\xff\xfe[\0]\0',
    '\xfe\xff\0[\0]',
    Buffer.from('\ufeff{"a":1}', 'utf16le').toString('latin1'),
  )
  .map((bytes) => Buffer.from(bytes, 'latin1'))

/** Too deep to be handled safely, or able to reach a prototype: refused although RFC 8259 allows them. */
export const REFUSED: readonly string[] = [
  ...[DEPTH_MAX + 1, 500, 10_000, 100_000].flatMap((levels) => [
    deep('[', ']', levels),
    `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`,
  ]),
  ...words('{"__proto__":1} {"constructor":{"prototype":{"a":1}}} {"prototype":1} {"a":{"__proto__":{"admin":true}}}'),
  ...words(String.raw`[{"__proto__":[]}] {"\u005f_proto__":1} {"a":1,"__proto__":{"toString":1}}`),
]
