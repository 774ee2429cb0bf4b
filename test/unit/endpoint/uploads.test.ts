import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FORM_MAX_FILES, FORM_NAME_MAX_CHARS, parseMultipart } from '../../../src/runtime/endpoint/input/multipart.ts'

type Part = readonly [head: string, content: string | Uint8Array]

const TYPE = 'multipart/form-data; boundary=cut'

function bodyOf(parts: readonly Part[], end = '--cut--\r\n'): Buffer {
  const pieces = parts.map(([head, content]) =>
    Buffer.concat([Buffer.from(`--cut\r\n${head}\r\n\r\n`), Buffer.from(content as string), Buffer.from('\r\n')]),
  )
  return Buffer.concat([...pieces, Buffer.from(end)])
}

const named = (name: string): string => `content-disposition: form-data; name="${name}"`
const file = (field: string, filename: string, type?: string): string =>
  `${named(field)}; filename="${filename}"${type === undefined ? '' : `\r\ncontent-type: ${type}`}`

async function parse(parts: readonly Part[] | Buffer, type = TYPE) {
  const fields: Record<string, unknown> = {}
  const files = await parseMultipart(Buffer.isBuffer(parts) ? parts : bodyOf(parts as Part[]), type, fields)
  return { fields, files }
}

const refused = (parts: readonly Part[] | Buffer, message: RegExp, type?: string): Promise<void> =>
  assert.rejects(parse(parts, type), { code: 'HTTP_BAD_REQUEST', message })

test('files come in their order, with field, name, type and bytes; fields stand beside them', async () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, n) => n)
  const { fields, files } = await parse([
    [file('pictures', 'a.png', 'image/PNG'), bytes],
    [named('title'), 'Ü'],
    [file('pictures', 'b.txt', 'text/plain; charset=utf-8'), 'b'],
    [file('other', 'empty.bin'), ''],
    [named('title'), 'again'],
  ])
  assert.deepEqual(fields, { title: ['Ü', 'again'] })
  assert.deepEqual(
    files.map(({ field, filename, type, bytes }) => [field, filename, type, bytes.byteLength]),
    [
      ['pictures', 'a.png', 'image/png', 256],
      ['pictures', 'b.txt', 'text/plain', 1],
      ['other', 'empty.bin', 'text/plain', 0],
    ],
  )
  assert.ok(Buffer.from(files[0]!.bytes).equals(bytes))
})

test('a control in which nothing was chosen brings no file', async () => {
  const { files } = await parse([[file('picture', '', 'application/octet-stream'), '']])
  assert.deepEqual(files, [])
})

test('a file name is never a path', async () => {
  const names: [given: string, filename: string][] = [
    ['../../etc/passwd', 'passwd'],
    ['..\\\\..\\\\boot.ini', 'boot.ini'],
    ['C:\\\\fakepath\\\\a.txt', 'a.txt'],
    ['/', ''],
    ['..', ''],
    ['.', ''],
    ['../', ''],
    ['.bashrc', '.bashrc'],
    ['a\0.txt', 'a.txt'],
    ['a\x1b[2J.txt', 'a[2J.txt'],
    ['gpj.\u202eexe', 'gpj.exe'],
    ['日本語 ü 🧵.txt', '日本語 ü 🧵.txt'],
    ['a\\"b.txt', 'a"b.txt'],
  ]
  for (const [given, filename] of names) {
    const { files } = await parse([[file('f', given), 'x']])
    assert.equal(files[0]?.filename, filename, JSON.stringify(given))
  }
})

test('what a type says is passed on, and decides nothing', async () => {
  for (const [type, shown] of [
    ['image/png', 'image/png'],
    ['application/x-msdownload', 'application/x-msdownload'],
    ['nonsense', 'nonsense'],
    ['text/plain; charset=nonsense', 'text/plain'],
    ['multipart/mixed; boundary=inner', 'multipart/mixed'],
  ] as const) {
    const { files } = await parse([[file('f', 'a', type), '\xff\0']])
    assert.equal(files[0]!.type, shown)
  }
})

test('a form has so many files, parts and characters of a name at most', async () => {
  const filesOf = (count: number) => Array.from({ length: count }, (_, n): Part => [file('f', `${n}.txt`), 'x'])
  assert.equal((await parse(filesOf(FORM_MAX_FILES))).files.length, FORM_MAX_FILES)
  await refused(filesOf(FORM_MAX_FILES + 1), /more than 100 files/)
  await refused(
    Array.from({ length: 1001 }, (_, n): Part => [named(`f${n}`), 'x']),
    /more than 1000 parts/,
  )
  const name = 'n'.repeat(FORM_NAME_MAX_CHARS)
  assert.deepEqual((await parse([[named(name), 'x']])).fields, { [name]: 'x' })
  await refused([[named(`${name}n`), 'x']], /more than 200 characters/)
  await refused([[file(`${name}n`, 'a'), 'x']], /more than 200 characters/)
  const long = 'x'.repeat(500_000)
  assert.equal((await parse([[named('text'), long]])).fields.text, long)
})

test('names that could do harm are refused, for files too', async () => {
  for (const key of ['__proto__', 'constructor', 'prototype']) {
    await refused([[named(key), 'x']], /forbidden key/)
    await refused([[file(key, 'a'), 'x']], /forbidden key/)
  }
  await refused([['content-disposition: form-data', 'x']], /without a name/)
  await refused([['content-disposition: form-data; filename="a"', 'x']], /without a name/)
  await refused([[named('text'), Buffer.of(0xff)]], /not valid UTF-8/)
})

test('boundaries that are none, or lead nowhere, are refused, and nothing hangs', async () => {
  const good = bodyOf([[file('f', 'a.txt'), 'x']])
  for (const type of ['multipart/form-data', 'multipart/form-data; boundary=', 'multipart/form-data; boundary=""']) {
    await refused(good, /no valid boundary|malformed/, type)
  }
  await refused(good, /malformed|broken/, 'multipart/form-data; boundary=other')
  await refused(bodyOf([[file('f', 'a.txt'), 'x']], ''), /malformed|broken/)
  await refused(Buffer.from('--cut\r\n'), /malformed|broken/)
  await refused(Buffer.from('--cut'), /malformed|broken/)
  await refused(Buffer.from(`--cut\r\n${file('f', 'a')}\r\n`), /malformed|broken/)
  for (let at = 0; at < good.byteLength - 8; at++) {
    await parse(good.subarray(0, at)).then(
      () => assert.fail(`cut at ${at} it is a whole form`),
      (error) => assert.equal(error.code, 'HTTP_BAD_REQUEST'),
    )
  }
  // Boundaries in the content, nearly.
  const tricky = '\r\n--cu\r\n--cu t\r\n-cut--\r\r\n--'
  const { files } = await parse([[file('f', 'a.txt'), tricky]])
  assert.equal(Buffer.from(files[0]!.bytes).toString(), tricky)
  // What stands before and behind the form is nobody's.
  const framed = Buffer.concat([Buffer.from('preamble\r\n'), good, Buffer.from('epilogue')])
  assert.equal((await parse(framed)).files.length, 1)
})

test('a long header of a part does no harm, and many are refused', async () => {
  const { files } = await parse([[`${file('f', 'a.txt')}\r\nx-long: ${'y'.repeat(200_000)}`, 'x']])
  assert.equal(Buffer.from(files[0]!.bytes).toString(), 'x')
  const many = Array.from({ length: 5000 }, (_, n) => `x-${n}: y`).join('\r\n')
  await assert.rejects(parse([[`${file('f', 'a.txt')}\r\n${many}`, 'x']]), /more than 32 headers/)
})
