const CR = 13
const LF = 10
const COLON = 58
const ZERO = 48
const STATUS_AT = 'HTTP/1.1 '.length
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024

/** `more`: not complete yet. `broken`: not an answer that this reader can frame; close the connection. */
export type ReadOutcome = 'ok' | 'non2xx' | 'more' | 'broken'

/** Where the parts of the previous answer lay. */
interface Shape {
  totalBytes: number
  headBytes: number
  lengthAt: number
  lengthDigits: string
}

/**
 * Frames the answers on one connection by status line and `content-length`.
 *
 * A benchmark gets the same kind of answer a million times, so the reader first compares a chunk with the shape of the previous
 * answer (end of the head, place and digits of the length): that costs a few byte comparisons. Anything else is parsed in full.
 */
export class ResponseReader {
  /** Status of the last complete answer. */
  status = 0
  /** Whether the last complete answer, a 503, had `retry-after`. */
  saysRetryAfter = false
  #shape: Shape | undefined
  #pending: Buffer | undefined

  /** Takes the next `bytes` of the connection. `chunk` may be overwritten afterwards. One answer at most is expected at a time. */
  read(chunk: Buffer, bytes: number): ReadOutcome {
    if (!this.#pending && this.#hasKnownShape(chunk, bytes)) return this.#complete(chunk, this.#shape!.headBytes)
    const part = chunk.subarray(0, bytes)
    const whole = this.#pending ? Buffer.concat([this.#pending, part]) : part
    const outcome = this.#parse(whole)
    this.#pending = outcome === 'more' ? Buffer.from(whole) : undefined
    return outcome
  }

  #hasKnownShape(chunk: Buffer, bytes: number): boolean {
    const shape = this.#shape
    if (!shape || bytes !== shape.totalBytes) return false
    const { headBytes, lengthAt, lengthDigits } = shape
    if (chunk[headBytes - 4] !== CR || chunk[headBytes - 3] !== LF) return false
    if (chunk[headBytes - 2] !== CR || chunk[headBytes - 1] !== LF) return false
    if (chunk[lengthAt - 2] !== COLON && chunk[lengthAt - 1] !== COLON) return false
    for (let digit = 0; digit < lengthDigits.length; digit++) {
      if (chunk[lengthAt + digit] !== lengthDigits.charCodeAt(digit)) return false
    }
    return chunk[lengthAt + lengthDigits.length] === CR
  }

  #parse(whole: Buffer): ReadOutcome {
    if (whole.length > MAX_RESPONSE_BYTES) return 'broken'
    const headEnd = whole.indexOf('\r\n\r\n')
    if (headEnd < 0) return 'more'
    const headBytes = headEnd + 4
    const head = whole.toString('latin1', 0, headBytes)
    if (!/^HTTP\/1\.1 [1-5]\d\d[ \r]/.test(head)) return 'broken'
    const length = /\r\ncontent-length: ?(\d+)\r\n/i.exec(head)
    if (!length) return this.#withoutLength(whole, headBytes)
    const lengthDigits = length[1]!
    const totalBytes = headBytes + Number(lengthDigits)
    if (whole.length < totalBytes) return 'more'
    if (whole.length > totalBytes) return 'broken'
    const lengthAt = length.index + length[0].length - '\r\n'.length - lengthDigits.length
    this.#shape = { totalBytes, headBytes, lengthAt, lengthDigits }
    return this.#complete(whole, headBytes)
  }

  /** Only 204 and 304 may come without a length; a chunked answer is beyond this reader. */
  #withoutLength(whole: Buffer, headBytes: number): ReadOutcome {
    const status = whole.toString('latin1', STATUS_AT, STATUS_AT + 3)
    const bodiless = status === '204' || status === '304'
    return bodiless && whole.length === headBytes ? this.#complete(whole, headBytes) : 'broken'
  }

  #complete(answer: Buffer, headBytes: number): ReadOutcome {
    const digit = (at: number) => answer[STATUS_AT + at]! - ZERO
    this.status = digit(0) * 100 + digit(1) * 10 + digit(2)
    if (this.status < 300) return this.status >= 200 ? 'ok' : 'non2xx'
    this.saysRetryAfter = this.status === 503 && /\r\nretry-after: ?\d/i.test(answer.toString('latin1', 0, headBytes))
    return 'non2xx'
  }
}
