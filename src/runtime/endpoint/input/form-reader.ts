// Reads `multipart/form-data` strictly, and no further than it is asked. Source: RFC 2046, section 5.1; RFC 7578.

import { isUtf8 } from 'node:buffer'
import { HeddleError } from '../../../core/errors/catalogue.ts'
import { withoutBlanks } from '../../../core/http/http-error.ts'
import { readParameters } from '../../../core/http/parameters.ts'

/** Bytes of a header of a part that is read, at most. */
const HEADER_MAX_BYTES = 16_384
/** Headers of a part at most, read or not: real clients send up to five. */
const HEADERS_MAX = 32
/** Headers that say what a part is. Others are ignored. */
const READ_HEADERS = new Set(['content-disposition', 'content-type', 'content-transfer-encoding'])
const PLAIN_ENCODINGS = new Set(['7bit', '8bit', 'binary'])

const CRLF = Buffer.from('\r\n')
const NO_BYTES = Buffer.alloc(0)

/** What the headers of a part say. */
export interface PartHead {
  readonly name: string | undefined
  /** As it was given; undefined for a part that is no file. */
  readonly filename: string | undefined
  readonly type: string
  readonly charset: string
}

export const formFault = (why: string): HeddleError => new HeddleError('HTTP_BAD_REQUEST', `The multipart body ${why}`)

/** The parts of a form, one after the other. */
export class FormReader {
  readonly #pieces: AsyncIterator<Uint8Array> | Iterator<Uint8Array>
  /** In front of each part, and behind the last one. */
  readonly #delimiter: Buffer
  /** What came and was not read. A delimiter begins a line: the first one, too. */
  #bytes: Buffer = CRLF
  #hasEnded = false
  /** Counts the parts whose heads were read. */
  #part = 0
  #isInPart = false

  /** @throws HTTP_BAD_REQUEST where the content type has no boundary */
  constructor(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, contentType: string) {
    const boundary = readParameters(contentType)?.parameters.get('boundary') ?? ''
    if (boundary === '') throw formFault('has no valid boundary')
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
    this.#pieces = Symbol.asyncIterator in body ? body[Symbol.asyncIterator]() : body[Symbol.iterator]()
  }

  /** The number of the part that is read now. */
  get part(): number {
    return this.#part
  }

  /** Skips what is left of a part, or what stands before the first one, and reads the head of the next. @returns null behind the last one */
  async next(): Promise<PartHead | null> {
    if (this.#part === 0) this.#isInPart = true
    while ((await this.#chunk()) !== null) {
      // Skipped.
    }
    this.#part++
    if (!(await this.#endsLine())) return null
    const head = await this.#head()
    this.#isInPart = true
    return head
  }

  /** The next bytes of a part; null at its end. @throws TypeError for one that was skipped */
  read(part: number): Promise<Buffer | null> {
    if (part === this.#part) return this.#chunk()
    throw new TypeError('The part was skipped: read it before the next one is asked for')
  }

  async #chunk(): Promise<Buffer | null> {
    while (this.#isInPart) {
      const delimiter = this.#delimiter
      const at = this.#bytes.indexOf(delimiter)
      if (at >= 0) this.#isInPart = false
      // The beginning of a delimiter may have come.
      const ready = at >= 0 ? at : this.#bytes.byteLength - delimiter.byteLength + 1
      const chunk = ready > 0 ? this.#take(ready) : NO_BYTES
      if (at >= 0) this.#take(delimiter.byteLength)
      if (chunk.byteLength > 0) return chunk
      if (this.#isInPart) await this.#more()
    }
    return null
  }

  /** The rest of a line with a delimiter, which may have blanks behind it. @returns false behind the last part */
  async #endsLine(): Promise<boolean> {
    while (this.#bytes.byteLength < 2 && (await this.#mayCome())) {
      // Two hyphens end the form.
    }
    const isLast = this.#bytes[0] === 0x2d && this.#bytes[1] === 0x2d
    if (isLast) this.#take(2)
    const line = await this.#line(isLast)
    if (withoutBlanks(line.toString('latin1')) !== '')
      throw formFault('is malformed: something stands behind a boundary')
    return !isLast
  }

  async #head(): Promise<PartHead> {
    const headers = new Map<string, string>()
    let last = ''
    for (let lines = 0; ; lines++) {
      const line = await this.#line(false)
      if (line.byteLength === 0) {
        await this.#keepLineEnd()
        return headOf(headers)
      }
      if (lines === HEADERS_MAX) throw formFault(`has a part with more than ${HEADERS_MAX} headers`)
      if (line.byteLength > HEADER_MAX_BYTES) {
        const name = line.toString('latin1', 0, 64).split(':', 1)[0]!.toLowerCase()
        if (READ_HEADERS.has(name)) throw formFault(`has a header of more than ${HEADER_MAX_BYTES} bytes`)
        last = name
        continue
      }
      if (!isUtf8(line)) throw formFault('is not valid UTF-8')
      const text = line.toString()
      if (/[\r\n]/.test(text)) throw formFault('is malformed: a header of a part is none')
      const isFolded = text.startsWith(' ') || text.startsWith('\t')
      const colon = text.indexOf(':')
      if (isFolded ? last === '' : colon < 1) throw formFault('is malformed: a header of a part is none')
      if (!isFolded) last = withoutBlanks(text.slice(0, colon)).toLowerCase()
      if (!READ_HEADERS.has(last)) continue
      const before = headers.get(last)
      if (!isFolded && before !== undefined) throw formFault(`has a part with two headers ${last}`)
      headers.set(last, isFolded ? before! + text : withoutBlanks(text.slice(colon + 1)))
      if (headers.get(last)!.length > HEADER_MAX_BYTES)
        throw formFault(`has a header of more than ${HEADER_MAX_BYTES} bytes`)
    }
  }

  /** The line end of an empty line is that of the delimiter behind it, where a part has no body. */
  async #keepLineEnd(): Promise<void> {
    const rest = this.#delimiter.subarray(CRLF.byteLength)
    while (this.#bytes.byteLength < rest.byteLength && (await this.#mayCome())) {
      // A delimiter may come in pieces.
    }
    if (this.#bytes.subarray(0, rest.byteLength).equals(rest)) this.#bytes = Buffer.concat([CRLF, this.#bytes])
  }

  /** A line without its end. Of one that is too long only more than a header may have. @param mayEnd the body may end with it */
  async #line(mayEnd: boolean): Promise<Buffer> {
    let kept = NO_BYTES
    for (;;) {
      const at = this.#bytes.indexOf(CRLF)
      if (at >= 0) {
        const line = this.#take(at)
        this.#take(2)
        return kept.byteLength === 0 ? line : Buffer.concat([kept, line])
      }
      if (this.#bytes.byteLength > HEADER_MAX_BYTES) {
        const rest = this.#take(this.#bytes.byteLength - 1)
        if (kept.byteLength <= HEADER_MAX_BYTES) kept = Buffer.concat([kept, rest])
      }
      if (!(await this.#mayCome())) {
        if (mayEnd) return Buffer.concat([kept, this.#take(this.#bytes.byteLength)])
        throw formFault('is malformed')
      }
    }
  }

  #take(bytes: number): Buffer {
    const taken = this.#bytes.subarray(0, bytes)
    this.#bytes = this.#bytes.subarray(bytes)
    return taken
  }

  async #more(): Promise<void> {
    if (!(await this.#mayCome())) throw formFault('is malformed')
  }

  async #mayCome(): Promise<boolean> {
    if (this.#hasEnded) return false
    const { done, value } = await this.#pieces.next()
    if (done) {
      this.#hasEnded = true
      return false
    }
    const piece = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    this.#bytes = this.#bytes.byteLength === 0 ? piece : Buffer.concat([this.#bytes, piece])
    return true
  }
}

function headOf(headers: ReadonlyMap<string, string>): PartHead {
  const disposition = readParameters(headers.get('content-disposition') ?? 'form-data', unquoted)
  if (disposition === null || disposition.value !== 'form-data')
    throw formFault('has a part whose content-disposition is malformed, or not form-data')
  const encoding = (headers.get('content-transfer-encoding') ?? 'binary').toLowerCase()
  if (!PLAIN_ENCODINGS.has(encoding))
    throw new HeddleError('HTTP_MEDIA_TYPE', `A part has the transfer encoding ${encoding}: send its bytes as they are`)
  const given = headers.get('content-type') ?? ''
  const content = readParameters(given)
  // Of malformed parameters the type is known all the same.
  const type = content?.value ?? withoutBlanks(given.split(';', 1)[0]!).toLowerCase()
  return {
    name: parameterOf(disposition.parameters, 'name'),
    filename: parameterOf(disposition.parameters, 'filename') ?? (type === 'application/octet-stream' ? '' : undefined),
    type: type || 'text/plain',
    charset: content?.parameters.get('charset') ?? 'utf-8',
  }
}

/** Browsers write three characters in percent, others have a backslash before them. Any other percent or backslash is itself, as in `C:\a.txt`. */
const unquoted = (quoted: string): string =>
  quoted
    .replace(/\\(["\\])/g, '$1')
    .replace(/%(22|0d|0a)/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

/** `filename*` says more than `filename`; some clients name fields so, too. Sources: RFC 6266, section 4.3; RFC 8187. */
function parameterOf(parameters: ReadonlyMap<string, string>, wanted: 'name' | 'filename'): string | undefined {
  for (const name of parameters.keys())
    if (/^(?:file)?name\*\d/.test(name)) throw formFault(`has a part with ${name}, which no form has`)
  const extended = parameters.get(`${wanted}*`)
  if (extended === undefined) return parameters.get(wanted)
  const [, charset = '', coded = ''] = /^([\w-]+)'[^']*'((?:[!#$&+.^_`|~\w-]|%[0-9a-f]{2})*)$/i.exec(extended) ?? []
  const bytes = Buffer.from(
    coded.replace(/%(..)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))),
    'latin1',
  )
  if (/^utf-8$/i.test(charset) && isUtf8(bytes)) return bytes.toString()
  if (/^iso-8859-1$/i.test(charset)) return bytes.toString('latin1')
  throw formFault(`has a part whose ${wanted}* is malformed`)
}
