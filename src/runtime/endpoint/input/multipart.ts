// The parts of a multipart form: all of them, or while they come.

import { isUtf8 } from 'node:buffer'
import type { BodyPart, BodyParts, SavedFile, SaveOptions, UploadedFile } from '../../../contracts/http-request.ts'
import { HeddleError } from '../../../core/errors/catalogue.ts'
import { gathered, type IncomingBody, saveToFile } from './body.ts'
import { FormReader, formFault } from './form-reader.ts'
import { FORM_MAX_FIELDS, isForbiddenKey, isReservedKey } from './parse.ts'

/** Files of a form at most. */
export const FORM_MAX_FILES = 100
/** Length of a field's name at most; far more than any real name has. */
export const FORM_NAME_MAX_CHARS = 200
/** Why a part may not have this name, as `The multipart body …` goes on; undefined when it may. */
function faultOfName(name: string | undefined): string | undefined {
  if (name === undefined) return 'has a part without a name'
  if (name.length > FORM_NAME_MAX_CHARS) return `has a name of more than ${FORM_NAME_MAX_CHARS} characters`
  return isForbiddenKey(name) ? `has the forbidden key ${name}` : undefined
}

/** A file's name without folders and invisible characters. It may still be anything else. */
function nameAlone(given: string): string {
  const name = given
    .slice(Math.max(given.lastIndexOf('/'), given.lastIndexOf('\\')) + 1)
    .replace(/[\p{Cc}\p{Bidi_Control}]/gu, '')
  return name === '.' || name === '..' ? '' : name
}

/** One part of a form. Its bytes come as fast as they are read. */
class Part implements BodyPart {
  readonly field: string
  readonly filename: string | null
  readonly type: string
  readonly #next: () => Promise<Buffer | null>

  constructor(field: string, filename: string | null, type: string, next: () => Promise<Buffer | null>) {
    this.field = field
    this.filename = filename
    this.type = type
    this.#next = next
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    for (let chunk = await this.#next(); chunk !== null; chunk = await this.#next()) yield chunk
  }

  saveTo(path: string | URL, options?: SaveOptions): Promise<SavedFile> {
    return saveToFile(this, path, options)
  }

  bytes(maxBytes?: number): Promise<Buffer> {
    return gathered(this, maxBytes)
  }

  async text(maxBytes?: number): Promise<string> {
    return (await gathered(this, maxBytes)).toString()
  }
}

/**
 * The parts of a multipart form in their order. Of the body so much is read as the parts are: what is left of one is skipped when the next one is
 * asked for.
 * @param fieldMaxBytes bytes of a part that is no file, at most: it is in memory before it is given
 * @throws HTTP_BAD_REQUEST, HTTP_MEDIA_TYPE, and HTTP_BODY_TOO_LARGE for such a part
 */
async function* partsOf(
  body: AsyncIterable<Buffer> | readonly Uint8Array[],
  contentType: string,
  fieldMaxBytes: number,
): AsyncGenerator<Part, void, undefined> {
  const form = new FormReader(body, contentType)
  let parts = 0
  let files = 0
  for (let head = await form.next(); head !== null; head = await form.next()) {
    const { name, filename, type, charset } = head
    if (++parts > FORM_MAX_FIELDS) throw formFault(`has more than ${FORM_MAX_FIELDS} parts`)
    if (filename !== undefined && ++files > FORM_MAX_FILES) throw formFault(`has more than ${FORM_MAX_FILES} files`)
    const fault = faultOfName(name)
    if (fault !== undefined) throw formFault(fault)
    const number = form.part
    const first = await form.read(number)
    if (filename === undefined) {
      const pieces = first === null ? [] : [first]
      let bytes = first?.byteLength ?? 0
      for (let piece = first; piece !== null; ) {
        if (bytes > fieldMaxBytes)
          throw new HeddleError('HTTP_BODY_TOO_LARGE', `A field has more than ${fieldMaxBytes} bytes`)
        piece = await form.read(number)
        if (piece === null) break
        pieces.push(piece)
        bytes += piece.byteLength
      }
      let text: Buffer | null = bytes === 0 ? null : inUtf8(Buffer.concat(pieces), charset)
      const next = async (): Promise<Buffer | null> => {
        const whole = text
        text = null
        return whole
      }
      yield new Part(name!, null, type, next)
      continue
    }
    const given = nameAlone(filename)
    // A browser sends an empty one for a control in which no file was chosen.
    if (given === '' && first === null) continue
    let ahead: Buffer | null = first
    const next = async (): Promise<Buffer | null> => {
      if (ahead === null) return form.read(number)
      const chunk = ahead
      ahead = null
      return chunk
    }
    yield new Part(name!, given, type, next)
  }
}

/** The text of a field, whose charset a part may name. @throws HTTP_BAD_REQUEST, HTTP_MEDIA_TYPE */
function inUtf8(bytes: Buffer, charset: string): Buffer {
  if (/^(?:utf-?8|us-ascii)$/i.test(charset)) {
    if (isUtf8(bytes)) return bytes
    throw formFault('is not valid UTF-8')
  }
  let decoder: InstanceType<typeof TextDecoder>
  try {
    decoder = new TextDecoder(charset, { fatal: true, ignoreBOM: true })
  } catch {
    throw new HeddleError('HTTP_MEDIA_TYPE', `Unsupported charset ${charset}; send UTF-8`)
  }
  try {
    return Buffer.from(decoder.decode(bytes))
  } catch {
    throw formFault(`is not valid ${charset}`)
  }
}

/** Bytes of a part that is no file, where parts are read while they come. */
const FIELD_MAX_BYTES = 1 << 20

/** The parts of a multipart form, read while they come and as fast as the handler takes them. */
export function incomingParts(body: IncomingBody, contentType: string): BodyParts {
  let hasBegun = false
  return {
    async *[Symbol.asyncIterator]() {
      if (hasBegun) throw new TypeError('The parts of the body are being read already')
      hasBegun = true
      if (!/^multipart\/form-data *(?:;|$)/i.test(contentType)) {
        throw new HeddleError('HTTP_MEDIA_TYPE', 'The body must be multipart/form-data')
      }
      try {
        yield* partsOf(body, contentType, FIELD_MAX_BYTES)
      } finally {
        body.destroy()
      }
    },
  }
}

/** Reads a multipart form from memory (the body limit bounds it): fields into `into`. @returns its files */
export async function parseMultipart(
  bytes: Uint8Array,
  contentType: string,
  into: Record<string, unknown>,
): Promise<UploadedFile[]> {
  const files: UploadedFile[] = []
  for await (const part of partsOf([bytes], contentType, Number.POSITIVE_INFINITY)) {
    const { field, filename, type } = part
    const content = await part.bytes(Number.POSITIVE_INFINITY)
    if (filename !== null) files.push({ field, filename, type, bytes: content })
    else if (!isReservedKey(field)) {
      const value = content.toString()
      // Only an own property: a field may be called `toString`.
      const before = Object.hasOwn(into, field) ? into[field] : undefined
      into[field] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
    }
  }
  return files
}
