import { isNodeListener, NODE_READS } from '../../support/listener.ts'

/** One request that two readers may end at different places. Everything before the request that is smuggled in behind it. */
export interface Shape {
  name: string
  /** Header lines between `host` and the blank line, each with its own line end. */
  head: string
  /** What stands behind the blank line. */
  body?: string
  /** Instead of ` HTTP/1.1` with CR LF behind it: what follows method and target. */
  version?: string
  /** Instead of `host: test` with CR LF behind it. */
  hostLine?: string
  /** Instead of CR LF: what ends the head. */
  blankLine?: string
  /**
   * The library (uWebSockets.js 20.51) goes on waiting here, and the runtime sees nothing: it cuts the connection off after some
   * seconds of silence, or a body's time is up.
   */
  isHeld?: true
  /** The library reads these as something else, and the runtime with it: answered, but for the last time on this connection. */
  isMisread?: true
}

const CHUNKED_END = '0\r\n\r\n'

const lengthAndCoding: Shape[] = []
for (const length of ['content-length', 'Content-Length', 'CONTENT-LENGTH']) {
  for (const [coding, value] of [
    ['transfer-encoding', 'chunked'],
    ['Transfer-Encoding', 'Chunked'],
    ['TRANSFER-ENCODING', 'CHUNKED'],
    ['transfer-encoding', 'identity'],
    ['transfer-encoding', ''],
  ] as const) {
    const lines = [`${length}: 5\r\n`, `${coding}: ${value}\r\n`] as const
    lengthAndCoding.push(
      { name: `${length} before ${coding}: ${value}`, head: lines[0] + lines[1], body: CHUNKED_END },
      { name: `${length} behind ${coding}: ${value}`, head: lines[1] + lines[0], body: CHUNKED_END },
    )
  }
}
lengthAndCoding.push(
  {
    name: 'a length of 0 before chunked',
    head: 'content-length: 0\r\ntransfer-encoding: chunked\r\n',
    body: CHUNKED_END,
  },
  {
    name: 'a length of 0 behind chunked',
    head: 'transfer-encoding: chunked\r\ncontent-length: 0\r\n',
    body: CHUNKED_END,
  },
  {
    name: 'another header between length and coding',
    head: 'content-length: 5\r\nx-a: b\r\ntransfer-encoding: chunked\r\n',
    body: CHUNKED_END,
  },
)

/** Bytes at the edge of a value that a reader may skip, or take for a part of it. */
const EDGES = ['\x0b', '\x0c', '\xa0', '\x85', '\xff', '\x01', '\x7f', '\0', ',', ';a', 'x', '"', "'", '"\'']

/** A header whose value or line is spoilt so that two readers may differ about it, by the name of what spoils it. */
function spoilt(header: string, value: string, others: string[]): [string, string][] {
  const line = `${header}: ${value}\r\n`
  const middle = Math.ceil(value.length / 2)
  const split = (between: string): string => value.slice(0, middle) + between + value.slice(middle)
  const values = [
    ...EDGES.flatMap((edge) => [edge + value, value + edge, edge + value + edge]),
    ...[`${value}, ${value}`, `${value},${value}`, `x ${value}`, split('\0'), '', '   ', '\t'],
    ...others,
  ]
  return [
    ...values.map((other): [string, string] => [JSON.stringify(other).slice(0, 60), `${header}: ${other}\r\n`]),
    ['twice', line + line],
    ['twice in different cases', line + line.toUpperCase()],
    ['twice with a header between them', `${line}x-a: b\r\n${line}`],
    ['a blank before the colon', `${header} : ${value}\r\n`],
    ['a tab before the colon', `${header}\t: ${value}\r\n`],
    ['a vertical tab before the colon', `${header}\x0b: ${value}\r\n`],
    ['a NUL before the colon', `${header}\0: ${value}\r\n`],
    ['a blank before the name', ` ${line}`],
    ['a tab before the name', `\t${line}`],
    ['a NUL in the name', line.replace('-', '\0-')],
    ['behind a bare LF', `x-a: b\n${line}`],
    ['its value on a folded line', `${header}:\r\n ${value}\r\n`],
    ['its value on a line folded by a tab', `${header}:\r\n\t${value}\r\n`],
    ['a folded second line', `${line} ${value}\r\n`],
    ['a folded second line of a list', `${line} , ${value}\r\n`],
    ['a bare LF inside', `${header}: ${split('\n')}\r\n`],
  ]
}

const NO_LENGTHS =
  '+2 -2 -0 +0 0x2 0X2 0o2 0b10 2h h2 2e0 2.0 2_0 2;2 \xb2 two NaN Infinity null [2] {2} 1000000000000000 ' +
  '18446744073709551618 340282366920938463463374607431768211458'
const lengths: Shape[] = [
  ['two that differ', 'content-length: 2\r\ncontent-length: 3\r\n'],
  ['two in different cases that differ', 'content-length: 2\r\nCONTENT-LENGTH: 0\r\n'],
  ['two of 0', 'content-length: 0\r\ncontent-length: 0\r\n'],
  ['two that differ with a header between them', 'content-length: 2\r\nx-a: b\r\ncontent-length: 3\r\n'],
  ...spoilt('content-length', '2', [
    ...NO_LENGTHS.split(' '),
    ...['2, 3', '1 2', '1\t2', '9'.repeat(400), `${'0'.repeat(20)}2`],
  ]),
].map(([name, head]) => ({ name: `content-length: ${name}`, head: head!, body: 'ab' }))

const NO_CODINGS =
  'identity|gzip|gzip, chunked|chunked, gzip|chunked, identity|identity, chunked|chunked;q=1|chunked; ext|chun ked|cow|' +
  'CHUNKED, CHUNKED|c\0hunked|chun\xe2\x84\xaaed'
const codings: Shape[] = [
  ...spoilt('transfer-encoding', 'chunked', NO_CODINGS.split('|')),
  ['chunked and identity', 'transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n'],
  ['identity and chunked', 'transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n'],
].map(([name, head]) => ({
  name: `transfer-encoding: ${name}`,
  head: head!,
  body: CHUNKED_END,
  // It takes bytes beyond ASCII at the edges of a value for blanks.
  ...(/: ([\x80-\xff]chunked|chunked[\x80-\xff])\r/.test(head!) ? { isMisread: true } : {}),
}))

const lines: Shape[] = [
  { name: 'a folded line', head: 'x-a: b\r\n c\r\n' },
  { name: 'a line folded by a tab', head: 'x-a: b\r\n\tc\r\n' },
  { name: 'a folded first line', head: ' x-a: b\r\n', hostLine: '' },
  { name: 'a bare LF behind a header', head: 'x-a: b\nx-c: d\r\n' },
  { name: 'bare LFs alone', head: 'x-a: b\n', hostLine: 'host: test\n', version: ' HTTP/1.1\n', blankLine: '\n' },
  { name: 'a bare LF ends the head', head: 'x-a: b\r\n', blankLine: '\n' },
  { name: 'a bare CR ends the head', head: 'x-a: b\r\n', blankLine: '\r' },
  { name: 'CR CR LF ends the head', head: 'x-a: b\r\n', blankLine: '\r\r\n' },
  { name: 'LF CR ends the head', head: 'x-a: b\r\n', blankLine: '\n\r' },
  { name: 'a bare CR in a value', head: 'x-a: b\rc\r\n', isHeld: true },
  { name: 'a bare CR before a length', head: 'x-a: b\rcontent-length: 2\r\n', body: 'ab', isHeld: true },
  {
    name: 'a bare CR before a coding',
    head: 'x-a: b\rtransfer-encoding: chunked\r\n',
    body: CHUNKED_END,
    isHeld: true,
  },
  { name: 'a bare CR behind a length', head: 'content-length: 2\r\r\n', body: 'ab', isHeld: true },
  { name: 'CR CR LF behind a header', head: 'x-a: b\r\r\ncontent-length: 2\r\n', body: 'ab', isHeld: true },
  { name: 'a bare CR in a name', head: 'x-\ra: b\r\n' },
  { name: 'a NUL in a value', head: 'x-a: b\0c\r\n' },
  { name: 'a NUL in a name', head: 'x-\0a: b\r\n' },
  { name: 'a control character in a value', head: 'x-a: b\x01c\r\n' },
  { name: 'a control character in a name', head: 'x-\x01a: b\r\n' },
  { name: 'a byte beyond ASCII in a name', head: 'x-\xe9: b\r\n' },
  { name: 'a blank in a name', head: 'x a: b\r\n' },
  { name: 'a blank before a colon', head: 'x-a : b\r\n' },
  { name: 'a bracket in a name', head: 'x(a): b\r\n' },
  { name: 'a slash in a name', head: 'x/a: b\r\n' },
  { name: 'no colon', head: 'x-a\r\n' },
  { name: 'two hosts', head: 'host: other\r\n' },
  { name: 'two equal hosts', head: 'host: test\r\n' },
  { name: 'two hosts in different cases', head: 'HOST: test\r\n' },
  { name: 'no host', head: 'x-a: b\r\n', hostLine: '' },
  {
    name: 'an empty header name before a coding',
    head: ': x\r\ntransfer-encoding: chunked\r\n',
    body: CHUNKED_END,
    isMisread: true,
  },
  { name: 'an empty header name before a length', head: ': x\r\ncontent-length: 2\r\n', body: 'ab', isMisread: true },
  { name: 'a bare LF behind the request line', head: '', version: ' HTTP/1.1\n' },
  { name: 'a bare CR behind the request line', head: '', version: ' HTTP/1.1\r' },
  { name: 'no version', head: '', version: '\r\n', isHeld: true },
  { name: 'a folded request line', head: '', version: '\r\n HTTP/1.1\r\n', isHeld: true },
]

/** Requests that nobody may answer as if their end were known. */
export const AMBIGUOUS: readonly Shape[] = [...lengthAndCoding, ...lengths, ...codings, ...lines]

/** A size that reads larger than it is: in an extension, `;` and letters count as digits. */
const HELD_CHUNKS = new Set([
  'a size of 32 bits and 3',
  'an extension',
  'an extension with a bare LF',
  'an extension with a bare CR',
  'an extension with a NUL',
  'an extension of the last chunk',
  'less data than the size says',
])
const CHUNKED = 'transfer-encoding: chunked\r\n'
/** Chunked bodies that are written wrongly. */
export const BAD_CHUNKS: readonly Shape[] = [
  ['a negative size', '-3\r\nabc\r\n0\r\n\r\n'],
  ['a size with a plus', '+3\r\nabc\r\n0\r\n\r\n'],
  ['a size with a 0x', '0x3\r\nabc\r\n0\r\n\r\n'],
  ['a size that ends in h', '3h\r\nabc\r\n0\r\n\r\n'],
  ['a size in words', 'three\r\nabc\r\n0\r\n\r\n'],
  ['no size', '\r\nabc\r\n0\r\n\r\n'],
  ['a size of blanks', '  \r\nabc\r\n0\r\n\r\n'],
  ['a blank before the size', ' 3\r\nabc\r\n0\r\n\r\n'],
  ['a blank behind the size', '3 \r\nabc\r\n0\r\n\r\n'],
  ['a tab behind the size', '3\t\r\nabc\r\n0\r\n\r\n'],
  ['a blank inside the size', '0 3\r\nabc\r\n0\r\n\r\n'],
  ['an underscore in the size', '0_3\r\nabc\r\n0\r\n\r\n'],
  ['a point in the size', '3.0\r\nabc\r\n0\r\n\r\n'],
  ['a comma behind the size', '3,\r\nabc\r\n0\r\n\r\n'],
  ['a NUL behind the size', '3\0\r\nabc\r\n0\r\n\r\n'],
  ['a size of 32 bits and 3', '100000003\r\nabc\r\n0\r\n\r\n'],
  ['a size of 64 bits and 3', '10000000000000003\r\nabc\r\n0\r\n\r\n'],
  ['the largest size of 64 bits', 'ffffffffffffffff\r\nabc\r\n0\r\n\r\n'],
  ['the largest signed size of 64 bits', '7fffffffffffffff\r\nabc\r\n0\r\n\r\n'],
  ['a size of 40 digits', `${'f'.repeat(40)}\r\nabc\r\n0\r\n\r\n`],
  ['a size of 40 zeros and 3', `${'0'.repeat(40)}3\r\nabc\r\n0\r\n\r\n`],
  ['a size of 4,000 zeros and 3', `${'0'.repeat(4_000)}3\r\nabc\r\n0\r\n\r\n`],
  ['a bare LF behind the size', '3\nabc\r\n0\r\n\r\n'],
  ['a bare CR behind the size', '3\rabc\r\n0\r\n\r\n'],
  ['a CR CR LF behind the size', '3\r\r\nabc\r\n0\r\n\r\n'],
  ['an extension', '3;a\r\nabc\r\n0\r\n\r\n'],
  ['an extension with a value', '3;name=value\r\nabc\r\n0\r\n\r\n'],
  ['an extension in quotes', '3;name="a b"\r\nabc\r\n0\r\n\r\n'],
  ['an extension with a bare LF', '3;a\nb\r\nabc\r\n0\r\n\r\n'],
  ['an extension with a bare CR', '3;a\rb\r\nabc\r\n0\r\n\r\n'],
  ['an extension with a NUL', '3;\0\r\nabc\r\n0\r\n\r\n'],
  ['an extension of 16 KiB', `3;${'a'.repeat(16_384)}\r\nabc\r\n0\r\n\r\n`],
  ['an extension of the last chunk', '3\r\nabc\r\n0;a=b\r\n\r\n'],
  ['no line end behind the data', '3\r\nabc0\r\n\r\n'],
  ['other bytes behind the data', '3\r\nabcXX0\r\n\r\n'],
  ['a bare LF behind the data', '3\r\nabc\n0\r\n\r\n'],
  ['a bare CR behind the data', '3\r\nabc\r0\r\n\r\n'],
  ['more data than the size says', '3\r\nabcdef\r\n0\r\n\r\n'],
  ['less data than the size says', '8\r\nabc\r\n0\r\n\r\n'],
  ['an empty line before the first chunk', '\r\n3\r\nabc\r\n0\r\n\r\n'],
  ['bare LFs alone', '3\nabc\n0\n\n'],
  ['a bare LF at the very end', '3\r\nabc\r\n0\r\n\n'],
  ['a bare CR at the very end', '3\r\nabc\r\n0\r\n\r'],
  ['no last line end', '3\r\nabc\r\n0\r\n'],
  ['several zeros as the last chunk', '3\r\nabc\r\n000\r\n\r\n'],
  ['a negative zero as the last chunk', '3\r\nabc\r\n-0\r\n\r\n'],
  ['a trailer', '3\r\nabc\r\n0\r\nx-a: b\r\n\r\n'],
  ['a trailer with a length', '3\r\nabc\r\n0\r\ncontent-length: 30\r\n\r\n'],
  ['a trailer without a colon', '3\r\nabc\r\n0\r\nx-a\r\n\r\n'],
].map(([name, body]) => ({
  name: `chunks: ${name}`,
  head: CHUNKED,
  body: body!,
  ...(HELD_CHUNKS.has(name!) ? { isHeld: true } : {}),
}))

/** The library goes on waiting. */
export const isHeld = (shape: Shape): boolean =>
  isNodeListener ? shape.name in NODE_READS['on and on'] : shape.isHeld === true

/** The library can tell where it ends: what comes behind its answer is another request. */
export const isValid = (shape: Shape): boolean => isNodeListener && shape.name in NODE_READS['as valid']

/** The library takes it for a valid request. */
export const isMisread = (shape: Shape): boolean => !isNodeListener && shape.isMisread === true

/** The bytes of a shape. @param front its method and target */
export function bytesOf({ head, body = '', ...lines }: Shape, front: string): { head: Buffer; body: Buffer } {
  const { version = ' HTTP/1.1\r\n', hostLine = 'host: test\r\n', blankLine = '\r\n' } = lines
  return {
    head: Buffer.from(front + version + hostLine + head + blankLine, 'latin1'),
    body: Buffer.from(body, 'latin1'),
  }
}
