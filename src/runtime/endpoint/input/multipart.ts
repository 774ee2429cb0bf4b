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
  fieldSize: Number.POSITIVE_INFINITY,
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

const NO_BYTES = new Uint8Array(0)

/** Reads a multipart form from memory (the body limit bounds it): fields into `into`, files into `into._files`. */
export async function parseMultipart(
  bytes: Uint8Array,
  contentType: string,
  into: Record<string, unknown>,
): Promise<void> {
  // Loaded by the first upload: most lanes never get one.
  const { Busboy } = await import('@fastify/busboy')
  const files: UploadedFile[] = []
  await new Promise<void>((resolve, reject) => {
    const refuse = (why: string): void => reject(new HeddleError('HTTP_BAD_REQUEST', `The multipart body ${why}`))
    let parser: InstanceType<typeof Busboy>
    try {
      parser = new Busboy({
        headers: { 'content-type': contentType },
        limits: PARSER_LIMITS,
      })
    } catch {
      return refuse('has no valid boundary')
    }
    /** False when the form is refused for it. */
    const isName = (name: string | undefined): name is string => {
      // Not thrown: an error in here would end the thread.
      const fault = faultOfName(name)
      if (fault === undefined) return true
      refuse(fault)
      return false
    }
    parser.on('field', (name: string | undefined, value: string) => {
      if (!isName(name) || isReservedKey(name)) return
      if (value.includes('\ufffd')) return refuse('is not valid UTF-8')
      // Only an own property: a field may be called `toString`.
      const before = Object.hasOwn(into, name) ? into[name] : undefined
      into[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
    })
    parser.on('file', (field: string | undefined, stream, given: string | undefined, _encoding, type) => {
      // First: a file that is cut off is an error of its stream, and an error without a listener ends the thread.
      stream.on('error', () => refuse('is broken'))
      if (!isName(field)) {
        stream.resume()
        return
      }
      const filename = nameAlone(given ?? '')
      const file: UploadedFile = { field, filename, type, bytes: NO_BYTES }
      files.push(file)
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        file.bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
        // A browser sends this for a control in which no file was chosen.
        if (given === '' && file.bytes.byteLength === 0) files.splice(files.indexOf(file), 1)
      })
    })
    parser.on('partsLimit', () => refuse(`has more than ${FORM_MAX_FIELDS} parts`))
    parser.on('filesLimit', () => refuse(`has more than ${FORM_MAX_FILES} files`))
    parser.on('error', () => refuse('is malformed'))
    parser.on('finish', () => resolve())
    parser.end(bytes)
  })
  into._files = files
}

/** One part of a form that is read while it comes. */
class IncomingPart implements BodyPart {
  readonly field: string
  readonly filename: string | null
  readonly type: string
  readonly #source: Readable
  #fault: Error | null = null

  constructor(field: string, filename: string | null, type: string, source: Readable) {
    this.field = field
    this.filename = filename
    this.type = type
    this.#source = source
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    try {
      // Destroyed when its reader leaves the loop, it would stop the parts behind it.
      for await (const chunk of this.#source.iterator({ destroyOnReturn: false })) yield chunk as Buffer
    } catch (error) {
      // The parser has words of its own.
      throw this.#fault ?? error
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

  // ── for the runtime ───────────────────────────────────────────────────────

  /** Nobody wants the rest. */
  skip(): void {
    this.#source.resume()
  }

  /** Its end does not come. */
  fail(error: Error): void {
    this.#fault ??= error
    this.#source.destroy(error)
  }

  /** True for a part without a byte. Waits for its first. */
  async isEmpty(): Promise<boolean> {
    const source = this.#source
    if (source.readableLength > 0) return false
    if (!source.readableEnded && !source.destroyed) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          for (const event of ['readable', 'end', 'error', 'close']) source.off(event, done)
          resolve()
        }
        for (const event of ['readable', 'end', 'error', 'close']) source.on(event, done)
      })
    }
    return source.readableLength === 0 && source.errored === null
  }
}

/** Bytes of a part that is no file, at most: it is read before its handler gets it. */
const FIELD_MAX_BYTES = 1 << 20
/** Bytes of such parts that wait for the handler; further ones are not read before it has taken them. */
const FIELDS_WAITING_BYTES = 256 * 1024

type Parser = InstanceType<typeof import('@fastify/busboy').Busboy>

/** The parts of a multipart form, read while they come and as fast as the handler takes them. */
export class IncomingParts implements BodyParts {
  readonly #body: IncomingBody
  readonly #contentType: string
  readonly #parts: { part: IncomingPart; waitingBytes: number }[] = []
  #current: IncomingPart | null = null
  #waitingBytes = 0
  #fault: Error | null = null
  #isOver = false
  #hasBegun = false
  #wakeReader: (() => void) | null = null
  #wakePump: (() => void) | null = null

  constructor(body: IncomingBody, contentType: string) {
    this.#body = body
    this.#contentType = contentType
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<BodyPart, void, undefined> {
    if (this.#hasBegun) throw new TypeError('The parts of the body are being read already')
    this.#hasBegun = true
    if (!/^multipart\/form-data *(?:;|$)/i.test(this.#contentType)) {
      throw new HeddleError('HTTP_MEDIA_TYPE', 'The body must be multipart/form-data')
    }
    // Loaded by the first upload: most lanes never get one.
    const { Busboy } = await import('@fastify/busboy')
    try {
      void this.#pump(this.#parser(Busboy))
      for (;;) {
        const part = await this.#nextPart()
        if (part === null) return
        // A browser sends this for a control in which no file was chosen.
        if (part.filename !== '' || !(await part.isEmpty())) yield part
        part.skip()
      }
    } finally {
      this.#isOver = true
      this.#wakePump?.()
      await this.#body.return()
    }
  }

  #parser(Busboy: typeof import('@fastify/busboy').Busboy): Parser {
    let parser: Parser
    try {
      const limits = { ...PARSER_LIMITS, fieldSize: FIELD_MAX_BYTES }
      parser = new Busboy({ headers: { 'content-type': this.#contentType }, limits })
    } catch {
      throw new HeddleError('HTTP_BAD_REQUEST', 'The multipart body has no valid boundary')
    }
    parser.on('field', (name: string | undefined, value: string, _isNameCut, isCut, _encoding, type) => {
      if (isCut)
        return this.#fail(new HeddleError('HTTP_BODY_TOO_LARGE', `A field has more than ${FIELD_MAX_BYTES} bytes`))
      if (value.includes('\ufffd')) return this.#refuse('is not valid UTF-8')
      const bytes = Buffer.from(value)
      this.#add(
        name,
        null,
        type,
        Readable.from(bytes.byteLength === 0 ? [] : [bytes], { objectMode: false }),
        bytes.byteLength,
      )
    })
    parser.on('file', (name: string | undefined, stream, given: string | undefined, _encoding, type) => {
      stream.on('error', () => this.#refuse('is broken'))
      this.#add(name, nameAlone(given ?? ''), type, stream)
    })
    parser.on('partsLimit', () => this.#refuse(`has more than ${FORM_MAX_FIELDS} parts`))
    parser.on('filesLimit', () => this.#refuse(`has more than ${FORM_MAX_FILES} files`))
    parser.on('error', () => this.#refuse('is malformed'))
    parser.on('finish', () => this.#end())
    return parser
  }

  /** Feeds the parser, which takes the next piece when what it has made of the one before is read. */
  async #pump(parser: Parser): Promise<void> {
    try {
      for await (const piece of this.#body) {
        await new Promise<void>((resolve) => parser.write(piece, () => resolve()))
        while (this.#waitingBytes > FIELDS_WAITING_BYTES && !this.#isOver) {
          await new Promise<void>((resolve) => {
            this.#wakePump = resolve
          })
        }
        if (this.#isOver) return
      }
      parser.end()
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  async #nextPart(): Promise<IncomingPart | null> {
    for (;;) {
      if (this.#fault !== null) throw this.#fault
      const next = this.#parts.shift()
      if (next !== undefined) {
        this.#current = next.part
        this.#waitingBytes -= next.waitingBytes
        this.#wakePump?.()
        return next.part
      }
      if (this.#isOver) return null
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve
      })
    }
  }

  #add(name: string | undefined, filename: string | null, type: string, source: Readable, waitingBytes = 0): void {
    // An error without a listener ends the thread.
    source.on('error', NOTHING)
    const fault = faultOfName(name)
    if (fault !== undefined) {
      source.resume()
      return this.#refuse(fault)
    }
    this.#waitingBytes += waitingBytes
    this.#parts.push({ part: new IncomingPart(name!, filename, type, source), waitingBytes })
    this.#wakeReader?.()
  }

  #end(): void {
    this.#isOver = true
    this.#wakeReader?.()
  }

  #refuse(why: string): void {
    this.#fail(new HeddleError('HTTP_BAD_REQUEST', `The multipart body ${why}`))
  }

  // Not thrown: an error in a callback of the parser would end the thread.
  #fail(error: Error): void {
    if (this.#isOver) return
    this.#fault = error
    this.#end()
    this.#current?.fail(error)
    for (const { part } of this.#parts) part.fail(error)
    this.#wakePump?.()
  }
}

const NOTHING = (): void => {}
