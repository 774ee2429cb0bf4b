import { Readable } from 'node:stream'
import type { BodyPart, BodyParts } from '../../contracts/request-body.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { FORM_MAX_FIELDS } from './form.ts'
import type { IncomingBody } from './incoming-body.ts'
import { IncomingPart } from './incoming-part.ts'
import { FORM_MAX_FILES, faultOfName, nameAlone, PARSER_LIMITS } from './multipart-names.ts'

/** Bytes of a part that is no file, at most: it is read before its handler gets it. */
export const FIELD_MAX_BYTES = 1 << 20
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
