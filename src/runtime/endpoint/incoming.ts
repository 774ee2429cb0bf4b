// A request frame, read as far as it is asked for.
import type { Operator } from '../../contracts/http-request.ts'
import type { TraceContext } from '../../contracts/tracing.ts'
import { type RequestFrame, requestIdOf, requestKeyOf } from '../../transport/frames/request-frame.ts'
import { METHODS } from './route.ts'

/** Between a header's name and its value and after it: the one character that a header line cannot hold. */
export const HEADER_SEPARATOR = '\r'

/** Knows the client's address of a request that came without it. */
export interface AddressSource {
  clientAddress(id: number): string
}

/** One request in the thread that handles it. Nothing is split or decoded before it is read. */
export class Incoming {
  readonly method: string
  readonly requestId: string
  readonly body: Uint8Array | null
  /** Of its token, or its session, once it was read. Undefined on most routes, which are not to pay for it. */
  declare claims: object | undefined
  /** Of whom `http.identify` has named. Undefined on most routes, too. */
  declare userId: string | undefined
  readonly #frame: RequestFrame
  readonly #sink: AddressSource
  readonly #id: number
  #headers: Record<string, string> | undefined
  #ip: string | undefined

  constructor(frame: RequestFrame, sink: AddressSource, id: number) {
    this.#frame = frame
    this.#sink = sink
    this.#id = id
    this.method = METHODS[frame.methodNumber]!
    this.requestId = requestIdOf(frame)
    this.body = frame.body
  }

  /** The system call for the address costs more than routing, parsing and answering: it is made only where handlers read it. */
  get ip(): string {
    if (this.#ip === undefined) {
      const { ipLength, idsLength, text } = this.#frame
      this.#ip = ipLength > 0 ? text.slice(idsLength, idsLength + ipLength) : this.#sink.clientAddress(this.#id)
    }
    return this.#ip
  }

  /** What the history knows it by. */
  get key(): string {
    return requestKeyOf(this.#frame)
  }

  get operator(): Operator | null {
    return this.#frame.operator ?? null
  }

  /** Raw, not decoded. */
  get path(): string {
    const from = this.#frame.idsLength + this.#frame.ipLength
    return this.#frame.text.slice(from, from + this.#frame.pathLength)
  }

  get hasQuery(): boolean {
    return this.#frame.queryLength > 0
  }

  /** Raw, without the question mark. */
  get query(): string {
    const from = this.#frame.idsLength + this.#frame.ipLength + this.#frame.pathLength
    return this.#frame.text.slice(from, from + this.#frame.queryLength)
  }

  get headers(): Record<string, string> {
    this.#headers ??= this.#splitHeaders()
    return this.#headers
  }

  /** One header alone: to make an object of all of them takes six times as long. Undefined where the request has none of this name. */
  header(name: string): string | undefined {
    if (this.#headers !== undefined) return this.#headers[name]
    const { text, traceLength } = this.#frame
    let found: string | undefined
    for (let at = this.#traceFrom + traceLength; at < text.length; ) {
      const nameEnd = text.indexOf(HEADER_SEPARATOR, at)
      const valueEnd = text.indexOf(HEADER_SEPARATOR, nameEnd + 1)
      // A text without its end: to go on would be to begin anew, for ever.
      if (valueEnd < at) break
      if (nameEnd - at === name.length && text.startsWith(name, at))
        found = together(name, found, text.slice(nameEnd + 1, valueEnd))
      at = valueEnd + 1
    }
    return found
  }

  /** The span of the request; empty while tracing is off. */
  get trace(): TraceContext {
    const from = this.#traceFrom
    return this.#frame.text.slice(from, from + this.#frame.traceLength)
  }

  get #traceFrom(): number {
    const { idsLength, ipLength, pathLength, queryLength } = this.#frame
    return idsLength + ipLength + pathLength + queryLength
  }

  #splitHeaders(): Record<string, string> {
    const { traceLength, text } = this.#frame
    const parts = text.slice(this.#traceFrom + traceLength).split(HEADER_SEPARATOR)
    const headers: Record<string, string> = Object.create(null)
    for (let n = 0; n + 1 < parts.length; n += 2) {
      const name = parts[n]!
      headers[name] = together(name, headers[name], parts[n + 1]!)
    }
    return headers
  }
}

/** The value of a header that comes several times. Cookies alone are joined by `;` (RFC 6265, section 5.4). */
const together = (name: string, before: string | undefined, value: string): string =>
  before === undefined ? value : before + (name === 'cookie' ? '; ' : ', ') + value
