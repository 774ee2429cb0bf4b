import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readParameters } from '../../../src/core/http/parameters.ts'
import { FormReader } from '../../../src/runtime/endpoint/input/form-reader.ts'
import { parseMultipart } from '../../../src/runtime/endpoint/input/multipart.ts'

const TYPE = 'multipart/form-data; boundary=cut'
const A = 'content-disposition: form-data; name="a"'
const form = (text: string): Buffer => Buffer.from(text.replaceAll('\n', '\r\n'))
/** A form with these headers and this content as its second part. */
const second = (head: string, content = 'two'): Buffer =>
  form(`--cut\n${A}\n\none\n--cut\n${head}\n\n${content}\n--cut--\n`)
const file = (rest: string): Buffer => second(`content-disposition: form-data; name="f"; ${rest}`)

const AB = { fields: { a: 'one', b: 'two' } as Record<string, string>, files: [] as unknown[] }
const b = 'content-disposition: form-data; name="b"'
const named = (name: string) => ({ fields: { a: 'one', [name]: 'two' }, files: [] })
const called = (filename: string) => ({ fields: { a: 'one' }, files: [['f', filename, 'two']] })

const READ: Record<string, [body: Buffer, result: typeof AB, type?: string]> = {
  'two parts': [second(b), AB],
  'blanks and tabs behind each boundary': [form(`--cut \t \n${A}\n\none\n--cut\t\n${b}\n\ntwo\n--cut-- \t\n`), AB],
  'no line end behind the last one': [form(`--cut\n${A}\n\none\n--cut\n${b}\n\ntwo\n--cut--`), AB],
  'a preamble and an epilogue, also one that looks like a part': [
    form(
      `to whom it may concern --cut\n--cut\n${A}\n\none\n--cut\n${b}\n\ntwo\n--cut--\n--cut\n${A}\n\nthree\n--cut--`,
    ),
    AB,
  ],
  'a boundary in quotes': [second(b), AB, 'Multipart/Form-Data; charset=utf-8; Boundary="cut"'],
  'a boundary with signs': [
    form(`--(c'u+t_,-./:=? x)\n${A}\n\none\n--(c'u+t_,-./:=? x)--\n`),
    { fields: { a: 'one' }, files: [] },
    `multipart/form-data; boundary="(c'u+t_,-./:=? x)"`,
  ],
  'a part without a body': [form(`--cut\n${A}\n\n--cut--\n`), { fields: { a: '' }, files: [] }],
  'a part whose body is empty': [form(`--cut\n${A}\n\n\n--cut--\n`), { fields: { a: '' }, files: [] }],
  'a body of line ends and hyphens': [
    form(`--cut\n${A}\n\n\n\n--\n--cu\n --cut\n\n--cut--\n`),
    { fields: { a: '\r\n\r\n--\r\n--cu\r\n --cut\r\n' }, files: [] },
  ],
  'no part at all': [form('--cut--\n'), { fields: {}, files: [] }],
  'other headers, folded ones, and any case': [
    second('X-Any: 1\nX-Any: 2\nCONTENT-Disposition : Form-Data;\n\tNAME="b"\ncontent-transfer-encoding: 8BIT'),
    AB,
  ],
  'a name without quotes': [second('content-disposition:form-data;name=b'), AB],
  'names as browsers write them': [second('content-disposition: form-data; name="%22b%0D%0A%22"'), named('"b\r\n"')],
  'names with a backslash': [second('content-disposition: form-data; name="\\"b\\\\c"'), named('"b\\c')],
  'any other percent': [second('content-disposition: form-data; name="%41%"'), named('%41%')],
  'a semicolon and an equals sign in a name': [
    second('content-disposition: form-data; name="b; c=d"'),
    named('b; c=d'),
  ],
  'a name in UTF-8': [second('content-disposition: form-data; name="ü 🧵"'), named('ü 🧵')],
  'U+FFFD, which somebody has typed': [second(b, '\ufffd'), { fields: { a: 'one', b: '\ufffd' }, files: [] }],
  'another charset that the part names': [
    Buffer.concat([
      form(`--cut\n${A}\n\none\n--cut\n${b}\ncontent-type: text/plain; charset="iso-8859-1"\n\n`),
      Buffer.from([0xfc]),
      form('\n--cut--\n'),
    ]),
    { fields: { a: 'one', b: 'ü' }, files: [] },
  ],
  'a file by its name': [file('filename="a.txt"'), called('a.txt')],
  'a percent-encoded quote in a file name': [file('filename="%22a%22.txt"'), called('"a".txt')],
  'filename* before filename': [
    file(`filename="e.txt"; filename*=UTF-8''%e2%82%ac%20rates.txt`),
    called('€ rates.txt'),
  ],
  'filename* behind filename, with a language': [file(`filename*=utf-8'en'a%C3%BC; filename="e.txt"`), called('aü')],
  'filename* in Latin-1': [file(`filename*=iso-8859-1''%fc.txt`), called('ü.txt')],
  'as many headers of a part as it may have': [second(`${b}${'\nx: y'.repeat(31)}`), AB],
  'a name in name*, as aiohttp sends it': [
    second(`content-disposition: form-data; name*=utf-8''%C3%BC`),
    { fields: { a: 'one', ü: 'two' }, files: [] },
  ],
  'a path in filename*': [file(`filename*=UTF-8''..%2F..%5Cetc%2Fpasswd`), called('passwd')],
}

const REFUSED: Record<string, [body: Buffer, message: RegExp, type?: string]> = {
  'text behind a boundary': [form(`--cut\n${A}\n\none\n--cut x\n${b}\n\ntwo\n--cut--\n`), /behind a boundary/],
  'a boundary that only begins so': [form(`--cut\n${A}\n\none\n--cutter\n${b}\n\ntwo\n--cut--\n`), /behind a boundary/],
  'one hyphen behind a boundary': [form(`--cut\n${A}\n\none\n--cut-\n${b}\n\ntwo\n--cut--\n`), /behind a boundary/],
  'text behind the last one': [form(`--cut\n${A}\n\none\n--cut--x\n`), /behind a boundary/],
  'text behind the first one': [form(`--cut;\n${A}\n\none\n--cut--\n`), /behind a boundary/],
  'no end': [form(`--cut\n${A}\n\none\n--cut\n${b}\n\ntwo`), /malformed/],
  'an end within headers': [form(`--cut\n${A}\n\none\n--cut\n${b}\n`), /malformed/],
  'line ends of LF alone': [Buffer.from(`--cut\n${A}\n\none\n--cut--\n`), /malformed/],
  'LF alone behind a boundary': [Buffer.from(`--cut\n${A}\r\n\r\none\r\n--cut--\r\n`), /malformed|boundary/],
  'LF alone between headers': [Buffer.from(`--cut\r\n${A}\nx: y\r\n\r\none\r\n--cut--\r\n`), /header/],
  'no empty line': [form(`--cut\n${A}\n--cut--\n`), /malformed/],
  'a header without a colon': [second(`${b}\nnonsense`), /header/],
  'a folded line before any header': [second(` ${b}`), /header/],
  'two content-dispositions': [second(`${b}\n${b}`), /two headers content-disposition/],
  'two content-types': [second(`${b}\ncontent-type: a/b\ncontent-type: a/c`), /two headers content-type/],
  'two names': [second('content-disposition: form-data; name="b"; name="c"'), /content-disposition/],
  'two file names': [file('filename="a"; filename="b"'), /content-disposition/],
  'a quote that does not end': [second('content-disposition: form-data; name="b'), /content-disposition/],
  'text behind a quote': [second('content-disposition: form-data; name="b"c'), /content-disposition/],
  'another disposition': [second('content-disposition: attachment; name="b"'), /content-disposition/],
  'no disposition': [second('content-type: text/plain'), /without a name/],
  'no name': [second('content-disposition: form-data'), /without a name/],
  'a name that is no UTF-8': [
    Buffer.from(
      second('content-disposition: form-data; name="\xfc"').toString('latin1').replace('\xc3\xbc', '\xfc'),
      'latin1',
    ),
    /not valid UTF-8/,
  ],
  'a name in pieces': [file(`filename*0="a"; filename*1="b"`), /filename\*0/],
  'filename* in no charset': [file(`filename*=a.txt`), /filename\*/],
  'filename* that is no UTF-8': [file(`filename*=UTF-8''%ff`), /filename\*/],
  'filename* in another charset': [file(`filename*=koi8-r''%c1`), /filename\*/],
  'a long content-disposition': [
    second(`content-disposition: form-data; name="b"; x="${'y'.repeat(20_000)}"`),
    /header of more/,
  ],
  'too many headers of a part': [second(`${b}${'\nx: y'.repeat(32)}`), /more than 32 headers/],
  'bytes in base64': [second(`${b}\ncontent-transfer-encoding: base64`), /transfer encoding base64/],
  'a charset that nobody knows': [second(`${b}\ncontent-type: text/plain; charset=klingon`), /charset klingon/],
  'no boundary': [second(b), /no valid boundary/, 'multipart/form-data; boundary'],
  'a boundary twice': [second(b), /no valid boundary/, `${TYPE}; boundary=cut`],
}

async function parse(body: Buffer, type = TYPE): Promise<typeof AB> {
  const fields: Record<string, string> = {}
  const files = await parseMultipart(body, type, fields)
  return {
    fields: fields as typeof AB.fields,
    files: files.map(({ field, filename, bytes }) => [field, filename, Buffer.from(bytes).toString()]),
  }
}

for (const [what, [body, result, type]] of Object.entries(READ))
  test(`a form is read exactly: ${what}`, async () => assert.deepEqual(await parse(body, type), result))

for (const [what, [body, message, type]] of Object.entries(REFUSED))
  test(`a form is refused: ${what}`, () => assert.rejects(parse(body, type), { name: 'HeddleError', message }))

/** All that a reader makes of a body in pieces. */
async function readAll(body: Buffer, pieceBytes: number, type: string): Promise<unknown> {
  const pieces = Array.from({ length: Math.ceil(body.byteLength / pieceBytes) }, (_, n) =>
    body.subarray(n * pieceBytes, (n + 1) * pieceBytes),
  )
  try {
    const parts: unknown[] = []
    const reader = new FormReader(pieces, type)
    for (let head = await reader.next(); head !== null; head = await reader.next()) {
      const content: Buffer[] = []
      for (let chunk = await reader.read(reader.part); chunk !== null; chunk = await reader.read(reader.part))
        content.push(chunk)
      parts.push([head, Buffer.concat(content).toString('latin1')])
    }
    return parts
  } catch (error) {
    return (error as Error).message
  }
}

test('the type of a file is known where its parameters are malformed', async () => {
  const files = await parseMultipart(file('filename="a.png"\ncontent-type: Image/PNG ; x'), TYPE, {})
  assert.equal(files[0]!.type, 'image/png')
})

test('parameters that do not end are read in one go', () => {
  const blanks = ' '.repeat(16_000)
  for (const rest of [
    `a=${blanks}"`,
    `a=${blanks}b${blanks}"`,
    `a${blanks}"`,
    `${blanks}"`,
    `a="${'\\'.repeat(16_000)}`,
  ])
    assert.equal(readParameters(`application/json; ${rest}`), null)
})

test('a form means the same however it comes in pieces', async () => {
  for (const [what, [body, , type = TYPE]] of Object.entries({ ...READ, ...REFUSED })) {
    const whole = await readAll(body, body.byteLength, type)
    for (const bytes of [1, 2, 3, 7, 64])
      assert.deepEqual(await readAll(body, bytes, type), whole, `${what}, by ${bytes}`)
  }
})

test('a part that was not read is skipped, and cannot be read later', async () => {
  const reader = new FormReader([second(b)], TYPE)
  await reader.next()
  const first = reader.part
  assert.equal((await reader.next())!.name, 'b')
  assert.throws(() => reader.read(first), /was skipped/)
  assert.equal(String(await reader.read(reader.part)), 'two')
})
