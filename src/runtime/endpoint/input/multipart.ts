// The parts of a multipart form: all of them, or while they come.

import { Readable } from 'node:stream'
import type { BodyPart, BodyParts, SavedFile, SaveOptions, UploadedFile } from '../../../contracts/http-request.ts'
import { HeddleError } from '../../../core/errors/catalogue.ts'
import { gathered, type IncomingBody, saveToFile } from './body.ts'
import { FORM_MAX_FIELDS, isForbiddenKey, isReservedKey } from './parse.ts'

/** Files of a form at most. */
export const FORM_MAX_FILES = 100
/** Length of a field's name at most; far more than any real name has. */
export const FORM_NAME_MAX_CHARS = 200
/** Headers of one part at most; the parser ignores further ones. */
const PART_MAX_HEADERS = 32
const PART_HEADERS_MAX_BYTES = 16_384

/** What the parser itself is to bound. It would cut fields and files off without a word: those bounds are ours. */
const PARSER_LIMITS = {
  parts: FORM_MAX_FIELDS,
  files: FORM_MAX_FILES,
  headerPairs: PART_MAX_HEADERS,
  headerSize: PART_HEADERS_MAX_BYTES,
}

/** Why a part may not have this name, as `The multipart body …` goes on; undefined when it may. */
function faultOfName(name: string | undefined): string | undefined {
  if (name === undefined) return 'has a part without a name'
  if (name.length > FORM_NAME_MAX_CHARS) return `has a name of more than ${FORM_NAME_MAX_CHARS} characters`
  if (name.includes('\ufffd')) return 'is not valid UTF-8'
  return isForbiddenKey(name) ? `has the forbidden key ${name}` : undefined
}

/** A file's name without folders and invisible characters. It may still be anything else. */
function nameAlone(given: string): string {
  const name = given
    .slice(Math.max(given.lastIndexOf('/'), given.lastIndexOf('\\')) + 1)
    .replace(/[\p{Cc}\p{Bidi_Control}\ufffd]/gu, '')
  return name === '.' || name === '..' ? '' : name
}

/** What a part is read from: the stream of a file, or the bytes of a field. */
type Source = Readable | readonly Buffer[]

/** One part of a form. Its bytes come as fast as they are read. */
class Part implements BodyPart {
  readonly field: string
  readonly filename: string | null
  readonly type: string
  readonly #source: Source
  readonly #form: Readable

  /** @param form what is wrong with it is wrong with a part that has not ended, too */
  constructor(field: string, filename: string | null, type: string, source: Source, form: Readable) {
    this.field = field
    this.filename = filename
    this.type = type
    this.#source = source
    this.#form = form
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    try {
      const source = this.#source
      // Destroyed when its reader leaves the loop, it would stop the parts behind it.
      const chunks = source instanceof Readable ? source.iterator({ destroyOnReturn: false }) : source
      for await (const chunk of chunks) yield chunk
    } catch (error) {
      // The parser has words of its own.
      throw this.#form.errored ?? error
    }
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

/** True for a file without a byte. Waits for its first. */
async function isEmpty(file: Readable): Promise<boolean> {
  if (file.readableLength === 0 && !file.readableEnded && !file.destroyed)
    await new Promise<void>((resolve) => {
      for (const event of ['readable', 'end', 'error']) file.once(event, () => resolve())
    })
  return file.readableLength === 0 && file.errored === null
}

/**
 * The parts of a multipart form in their order. Of the body so much is read as the parts are: what is left of one is skipped when the next one is
 * asked for.
 * @param fieldMaxBytes bytes of a part that is no file, at most: it is in memory before it is given
 * @throws HTTP_BAD_REQUEST, and HTTP_BODY_TOO_LARGE for such a part
 */
async function* partsOf(
  body: AsyncIterable<Buffer> | readonly Uint8Array[],
  contentType: string,
  fieldMaxBytes: number,
): AsyncGenerator<Part, void, undefined> {
  // Loaded by the first upload: most lanes never get one.
  const { Busboy } = await import('@fastify/busboy')
  let parser: InstanceType<typeof Busboy>
  try {
    parser = new Busboy({
      headers: { 'content-type': contentType },
      limits: { ...PARSER_LIMITS, fieldSize: fieldMaxBytes },
    })
  } catch {
    throw new HeddleError('HTTP_BAD_REQUEST', 'The multipart body has no valid boundary')
  }
  let wake = NOTHING
  const files: Readable[] = []
  /** Parts that nobody has taken yet, each with what it is read from. */
  const parts = new Readable({
    objectMode: true,
    highWaterMark: 1,
    read: () => wake(),
    destroy(error, done) {
      for (const file of files) file.destroy(error ?? undefined)
      wake()
      done(error)
    },
  })
  // Not thrown: an error in a callback of the parser would end the thread.
  const fail = (error: Error): unknown => parts.destroy(error)
  const refuse = (why: string): unknown => fail(new HeddleError('HTTP_BAD_REQUEST', `The multipart body ${why}`))
  const add = (name: string | undefined, filename: string | null, type: string, source: Source): void => {
    const fault = faultOfName(name)
    if (fault === undefined) return void parts.push([new Part(name!, filename, type, source, parts), source])
    if (source instanceof Readable) source.resume()
    refuse(fault)
  }
  parser.on('field', (name: string | undefined, value: string, _isNameCut, isCut, _encoding, type) => {
    if (isCut) return fail(new HeddleError('HTTP_BODY_TOO_LARGE', `A field has more than ${fieldMaxBytes} bytes`))
    if (value.includes('\ufffd')) return refuse('is not valid UTF-8')
    add(name, null, type, value === '' ? [] : [Buffer.from(value)])
  })
  parser.on('file', (name: string | undefined, file, given: string | undefined, _encoding, type) => {
    file.on('error', () => refuse('is broken'))
    files.push(file)
    add(name, nameAlone(given ?? ''), type, file)
  })
  parser.on('partsLimit', () => refuse(`has more than ${FORM_MAX_FIELDS} parts`))
  parser.on('filesLimit', () => refuse(`has more than ${FORM_MAX_FILES} files`))
  parser.on('error', () => refuse('is malformed'))
  parser.on('finish', () => parts.push(null))
  /** The parser takes the next piece when what it has made of the one before is taken, and read. */
  const feed = async (): Promise<void> => {
    for await (const piece of body) {
      await new Promise<void>((resolve) => parser.write(piece, () => resolve()))
      const isTaken = new Promise<void>((resolve) => {
        wake = resolve
      })
      if (parts.readableLength > 0) await isTaken
      if (parts.destroyed) return
    }
    parser.end()
  }
  feed().catch(fail)
  for await (const [part, source] of parts as AsyncIterable<[Part, Source]>) {
    const file = source instanceof Readable ? source : null
    // A browser sends an empty one for a control in which no file was chosen.
    if (file === null || part.filename !== '' || !(await isEmpty(file))) yield part
    file?.resume()
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

const NOTHING = (): void => {}
