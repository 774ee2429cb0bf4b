import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ask, jsonOf } from '../support/raw-client.ts'
import { shareHeddle } from '../support/shared-process.ts'
import { TARGET_DOMAINS } from './target.ts'

const heddle = shareHeddle({ env: { DOMAINS_DIR: TARGET_DOMAINS } })
const JSON_BODY = { 'content-type': 'application/json' }
const ANSWERED_WITHIN_MS = 5_000
const DEPTH_MAX = 64

/** Bytes as text: one character each. */
const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')
const deep = (open: string, close: string, levels: number): string => open.repeat(levels) + close.repeat(levels)

/** RFC 8259 allows these; the handler gets them as JavaScript reads them. */
const VALID: string[] = [
  ...[
    'null',
    'true',
    'false',
    '0',
    '-0',
    '1',
    '-1',
    '0.5',
    '-0.5',
    '1e5',
    '1E5',
    '1e+5',
    '1e-5',
    '0e1',
    '0E+1',
    '20e1',
    '123.456789',
  ],
  ...[
    '1.0000000000000000000000000000000001',
    '9007199254740993',
    '-123123123123123123123123123123',
    '1.7976931348623157e308',
    '5e-324',
  ],
  // Beyond what a double holds: infinity, and JSON knows none, so that it comes back as null.
  ...['1e309', '-1e309', '1e99999', '1e-99999', `${'9'.repeat(2_000)}`, `0.${'0'.repeat(2_000)}1`],
  ...[
    '""',
    '" "',
    '"a"',
    '"\\""',
    '"\\\\"',
    '"\\/"',
    '"/"',
    '"\\b\\f\\n\\r\\t"',
    '"\\u0000"',
    '"\\u001f"',
    '"\\u0022"',
    '"\\u005C"',
    '"\\uAbCd"',
  ],
  ...[
    '"\\ud834\\udd1e"',
    '"\\ud83d\\ude39\\ud83d\\udc8d"',
    '"\\ud800"',
    '"\\udc00"',
    '"\\udc00\\ud800"',
    '"\\ud800\\ud800"',
    '"\\ud800a"',
    '"\\ud800\\n"',
  ],
  ...[
    '"\\uffff"',
    '"\\ufffe"',
    '"\\ufdd0"',
    '"\\ufeff"',
    '"\\u200b"',
    '"\\u2028\\u2029"',
    '"\x7f"',
    '"é"',
    '"€"',
    '"𝄞"',
    '"\u2028\u2029"',
    '"\ufeff"',
    '"\u202e"',
  ],
  ...[
    '[]',
    '[ ]',
    '[[]]',
    '[null]',
    '[1,2]',
    '[1,null,"a",{}]',
    '[ 1 , 2 ]',
    '[\n1\r,\t2 ]',
    '[""]',
    '[[],[[]]]',
    ' [] ',
    '\t\r\n 1 \n',
  ],
  ...[
    '{}',
    '{ }',
    '{"a":1}',
    '{"a":{"b":{}}}',
    '{"":1}',
    '{"a":1,"b":2}',
    '{"\\u0000":1}',
    '{"é":1}',
    '{"a b":1}',
    '{"\\ud800":1}',
    '{"1":1,"0":2}',
  ],
  ...[
    '{"a":1,"a":2}',
    '{"a":1,"a":1}',
    '{"a":{},"a":[]}',
    '{"a":1,"\\u0061":2}',
    '{"hasOwnProperty":1}',
    '{"toString":1}',
    '{"__proto":1}',
    '{"then":1}',
  ],
  ...[
    '{"toJSON":1}',
    '{"length":-1}',
    '{"valueOf":null}',
    '{"__defineGetter__":1}',
    '{"success":false}',
    '{"id":{"$gt":""}}',
  ],
  ...[
    deep('[', ']', DEPTH_MAX),
    deep('{"a":', '}', DEPTH_MAX - 1).replace('}', '{}}'),
    `[${'1,'.repeat(50_000)}1]`,
    `"${'a'.repeat(500_000)}"`,
    `{"${'k'.repeat(100_000)}":1}`,
  ],
  `${' '.repeat(100_000)}1`,
]

/** RFC 8259 allows none of these. */
const INVALID: (string | Buffer)[] = [
  ...[
    '{',
    '}',
    '[',
    ']',
    '[1',
    '[1,',
    '[,',
    '[,1]',
    '[1,]',
    '[1,,2]',
    '[,]',
    '[1 2]',
    '[1:2]',
    '[1;2]',
    '[1}',
    '{1]',
    '[[]',
    '[]]',
    '[][]',
    '[1]x',
    '[1]#',
    '[a',
  ],
  ...[
    '{"a"}',
    '{"a":}',
    '{:1}',
    '{"a":1,}',
    '{,}',
    '{"a":1,,"b":2}',
    '{"a" 1}',
    '{"a":1 "b":2}',
    '{"a":1;"b":2}',
    '{a:1}',
    "{'a':1}",
    '{1:1}',
    '{null:1}',
    '{"a"::1}',
  ],
  ...[
    '{"a":1',
    '{"a":1]',
    '{"a',
    '{"a"',
    '{"a":',
    '{"a":1,',
    '{"a":"',
    '{}}',
    '{}{}',
    '{} {}',
    '{"a":1}x',
    '{"a":1}//',
    '{"a":1}#',
    '{[]:1}',
    '{"a",1}',
    '{"a":1,"b"}',
  ],
  ...[
    'NaN',
    '-NaN',
    'Infinity',
    '-Infinity',
    'inf',
    'nan',
    'undefined',
    'True',
    'TRUE',
    'nul',
    'nulll',
    'tru',
    'truE',
    'None',
    'nil',
    'yes',
    'function(){}',
    'new Date()',
  ],
  ...[
    '01',
    '-01',
    '+1',
    '++1',
    '--1',
    '-',
    '+',
    '.',
    '.5',
    '-.5',
    '1.',
    '-1.',
    '1.e1',
    '1e',
    '1e+',
    '1E-',
    '1ee1',
    '1e1.5',
    '1.2.3',
    '0x1',
    '0x',
    '0b1',
    '0o7',
    '1_000',
  ],
  ...[
    '1,5',
    '1 000',
    '1a',
    '-a',
    '1e1e1',
    '0e',
    '0e+',
    '00',
    '-00',
    '012',
    '1n',
    '１',
    '٣',
    '∞',
    '½',
    '1\0',
    '\x001',
    '- 1',
    '1 .5',
    '1f',
    '1L',
    '0.',
    '0.e1',
    '-0x1',
  ],
  ...[
    '"',
    '"a',
    'a"',
    "'a'",
    '`a`',
    '"a""',
    '"a"b',
    '"\\"',
    '"\\x00"',
    '"\\a"',
    '"\\u"',
    '"\\u1"',
    '"\\u12"',
    '"\\u123"',
    '"\\u123g"',
    '"\\U0041"',
    '"\\\'"',
    '"\\0"',
    '"\\ "',
  ],
  ...[
    '"\\u{41}"',
    '"\\ud83d\\u"',
    '"\n"',
    '"\r"',
    '"\t"',
    '"\0"',
    '"\x01"',
    '"\x1f"',
    '“a”',
    '"a\\',
    '"\\é"',
    'é',
    '\\u0022a\\u0022',
    '\\n',
    '"a" "b"',
    '""""',
  ],
  ...[
    '/* a */1',
    '1/* a */',
    '// a\n1',
    '1// a',
    '# a\n1',
    '<!-- -->',
    '[1,/**/2]',
    '{"a":/**/1}',
    '1;',
    '1,',
    ',1',
    ':',
    ';',
    '()',
    '<null>',
    '\\',
    '*',
    '&',
    '%',
    '@',
    '$',
    '?',
    '!',
  ],
  ...[
    '\ufeff1',
    '\ufeff{}',
    '\u00a01',
    '1\u00a0',
    '\u20281',
    '1\u2029',
    '\u30001',
    '\u180e1',
    '\v1',
    '\f1',
    '\b1',
    '\x1b1',
    '\0',
    '\0\0',
    '{}\0',
    '\u200b1',
    '１',
    '［］',
    '\u2060{}',
  ],
  ...[
    ' ',
    '\n',
    '\t \r\n',
    '[\v1]',
    '[\f1]',
    '[\u00a01]',
    '[1]\0',
    '{"a":\u00a01}',
    '{"a":1}\ufeff',
    '--cut\r\n',
    '<xml/>',
    'a=1&b=2',
    '\r\n\r\n{}'.replace('{}', 'x'),
  ],
  ...['[', '{"a":', '[{"a":', '"'].map((open) => open.repeat(100_000)),
  deep('[', ']', 100_000).slice(0, -1),
]

/** Not UTF-8: bare continuation bytes, overlong forms, surrogates, beyond U+10FFFF, cut off, other encodings. */
const NOT_UTF8: Buffer[] = [
  ...[
    '\x80',
    '\xbf',
    '\xc0\x80',
    '\xc0\xaf',
    '\xc1\xbf',
    '\xe0\x80\x80',
    '\xe0\x9f\xbf',
    '\xf0\x80\x80\x80',
    '\xf0\x8f\xbf\xbf',
    '\xf8\x88\x80\x80\x80',
  ],
  ...[
    '\xed\xa0\x80',
    '\xed\xbf\xbf',
    '\xed\xa0\x80\xed\xb0\x80',
    '\xf4\x90\x80\x80',
    '\xf5\x80\x80\x80',
    '\xfc\x84\x80\x80\x80\x80',
    '\xfe',
    '\xff',
    '\xfe\xff',
    '\xff\xfe',
  ],
  ...[
    '\xc3',
    '\xe2\x82',
    '\xf0\x9d\x84',
    '\xc3\x28',
    '\xe2\x28\xa1',
    '\xe2\x82\x28',
    '\xf0\x28\x8c\xbc',
    '\xe9',
    '\xe4\xf6\xfc',
    '\x93\xfa\x96\x7b',
  ],
].flatMap((raw) => [bytes(`"${raw}"`), bytes(`{"${raw}":1}`), bytes(`[1]${raw}`)])
NOT_UTF8.push(
  Buffer.from('\ufeff{"a":1}', 'utf16le'),
  bytes('\0\0\0{\0\0\0}'),
  bytes('\xff\xfe[\0]\0'),
  bytes('\xfe\xff\0[\0]'),
)

/** Too deep to be handled safely, or able to reach a prototype: refused although RFC 8259 allows them. */
const REFUSED: string[] = [
  ...[DEPTH_MAX + 1, 500, 10_000, 100_000].flatMap((levels) => [
    deep('[', ']', levels),
    `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`,
  ]),
  ...[
    '{"__proto__":1}',
    '{"constructor":{"prototype":{"a":1}}}',
    '{"prototype":1}',
    '{"a":{"__proto__":{"admin":true}}}',
    '[{"__proto__":[]}]',
    '{"\\u005f_proto__":1}',
  ],
  '{"a":1,"__proto__":{"toString":1}}',
]

for (const prefix of ['/w', '/p']) {
  describe(`JSON bodies of any shape, to ${prefix}`, { concurrency: true }, () => {
    const send = async (body: string | Buffer, target = '/mirror') => {
      const startedMs = performance.now()
      const response = await ask(heddle.port, 'POST', prefix + target, JSON_BODY, body)
      const tookMs = performance.now() - startedMs
      const what = JSON.stringify(body.toString().slice(0, 60))
      assert.ok(tookMs < ANSWERED_WITHIN_MS, `${what} took ${tookMs} ms`)
      return { response, what }
    }

    it(`reach the handler as JavaScript reads them: ${VALID.length} valid ones`, async () => {
      for (const body of VALID) {
        const { response, what } = await send(body)
        assert.equal(response.status, 200, what)
        const value = JSON.parse(body)
        const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
        const { fields, body: other } = jsonOf(response).data
        // What came out of the handler went through JSON once more: infinities are null there.
        assert.deepEqual(isObject ? fields : other, JSON.parse(JSON.stringify(value)), what)
      }
    })

    for (const [why, bodies] of [
      ['invalid ones', INVALID],
      ['not UTF-8', NOT_UTF8],
      ['too deep or able to reach a prototype', REFUSED],
    ] as const) {
      it(`are answered 400: ${bodies.length} ${why}`, async () => {
        for (const body of bodies) {
          const { response, what } = await send(body)
          assert.equal(response.status, 400, what)
          assert.equal(jsonOf(response).success, false)
        }
      })
    }

    it('are answered 400 or 422 where a schema waits for something else', async () => {
      for (const body of [...VALID, ...INVALID, ...NOT_UTF8, ...REFUSED]) {
        const { response, what } = await send(body, '/checked/1')
        assert.ok(response.status === 400 || response.status === 422, `${response.status} for ${what}`)
      }
    })
  })
}
