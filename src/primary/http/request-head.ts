// One pass over the head of a request: its headers, its path, its id, and whether its end is certain.
import { randomBytes } from 'node:crypto'
import { HEADER_SEPARATOR } from '../../transport/frames/request-frame.ts'
import type { ClientRequest } from './library.ts'

/** Methods that change nothing. Source: RFC 9110, section 9.2.1. */
export const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Longest `x-request-id` of a client that is used. */
const MAX_LENGTH = 128
const VISIBLE_ASCII = /^[\x21-\x7e]+$/

/** 96 bits in base64url: unique over all replicas, and nobody who knows some foretells another. */
const RANDOM_CHARS = 16
/** Made for so many ids at once: one by one they would cost ten times as much. */
const IDS_PER_FILL = 512
let random = ''
let at = 0

export function makeRequestId(): string {
  if (at === random.length) {
    random = randomBytes((IDS_PER_FILL * RANDOM_CHARS * 3) / 4).toString('base64url')
    at = 0
  }
  const from = at
  at += RANDOM_CHARS
  return `req_${random.slice(from, at)}`
}

/** The client's own id when it is valid, else a new one. */
export function requestIdOf(header: string): string {
  if (header !== '' && header.length <= MAX_LENGTH && VISIBLE_ASCII.test(header)) return header
  return makeRequestId()
}

/** Why the path of a request cannot be routed, for its client; null when it can. */
export function faultOfPath(path: string): string | null {
  if (path.includes('%')) {
    let decoded: string
    try {
      decoded = decodeURIComponent(path)
    } catch {
      return 'The path has invalid percent-encoding'
    }
    if (decoded.includes('\0')) return 'The path has a NUL'
  } else if (path.includes('\0')) return 'The path has a NUL'
  if (path.includes('\ufffd')) return 'The path is not valid UTF-8'
  return null
}

/**
 * One pass over a request's headers: their text for the thread that handles it, and the few that the listener needs.
 * One instance serves all requests, one after another: its fields are valid until the next pass.
 */
export class HeadScan {
  /** For the thread that handles the request; empty when it needs none. */
  text = ''
  /** What the text has, or would have. */
  textLength = 0
  requestId = ''
  origin = ''
  fetchSite = ''
  contentLength = ''
  transferEncoding = ''
  host = ''
  userAgent = ''
  traceparent = ''
  tracestate = ''
  forwardedFor = ''
  forwardedProto = ''
  /** Several are one list. Without `keep-alive`, which is the default. */
  connection = ''
  /** Length of the first one. */
  connectionLength = 0
  #contentLengths = 0
  #transferEncodings = 0
  #hosts = 0
  #wantsText = true

  /** @param wantsText whether the headers are wanted as a text */
  read(req: ClientRequest, wantsText: boolean): void {
    this.#wantsText = wantsText
    this.text = ''
    this.textLength = 0
    this.requestId = ''
    this.origin = ''
    this.fetchSite = ''
    this.contentLength = ''
    this.transferEncoding = ''
    this.host = ''
    this.userAgent = ''
    this.traceparent = ''
    this.tracestate = ''
    this.forwardedFor = ''
    this.forwardedProto = ''
    this.connection = ''
    this.connectionLength = 0
    this.#contentLengths = 0
    this.#transferEncodings = 0
    this.#hosts = 0
    req.forEach(this.#take)
  }

  readonly #take = (name: string, value: string): void => {
    this.textLength += name.length + value.length + 2
    if (this.#wantsText) this.text += name + HEADER_SEPARATOR + value + HEADER_SEPARATOR
    switch (name.length) {
      case 4:
        if (name === 'host') {
          this.#hosts++
          this.host = value
        }
        return
      case 6:
        if (name === 'origin') this.origin = value
        return
      case 10:
        if (name === 'user-agent') this.userAgent = value
        // Several `tracestate` headers are one list, in their order. Two `traceparent` headers make an invalid one.
        else if (name === 'tracestate') this.tracestate += this.tracestate === '' ? value : `,${value}`
        else if (name === 'connection') {
          if (this.connectionLength === 0) this.connectionLength = value.length
          if (value !== 'keep-alive') this.connection += this.connection === '' ? value : `,${value}`
        }
        return
      case 11:
        if (name === 'traceparent') this.traceparent += value
        return
      case 12:
        if (name === 'x-request-id') this.requestId = value
        return
      case 14:
        if (name === 'content-length') {
          this.#contentLengths++
          this.contentLength = value
        } else if (name === 'sec-fetch-site') this.fetchSite = value
        return
      case 15:
        // Several of them are one list.
        if (name === 'x-forwarded-for') this.forwardedFor += this.forwardedFor === '' ? value : `,${value}`
        return
      case 17:
        if (name === 'transfer-encoding') {
          this.#transferEncodings++
          this.transferEncoding = value
        } else if (name === 'x-forwarded-proto') this.forwardedProto += this.forwardedProto === '' ? value : `,${value}`
    }
  }

  /** True when no header announces a body. */
  get isUnframed(): boolean {
    return this.#contentLengths + this.#transferEncodings === 0
  }

  /**
   * Why the end of the request is not certain, or null. uWebSockets.js accepts such requests, and would answer a second request that
   * is hidden in the body: the connection must be closed (RFC 9112, sections 6.1, 6.3 and 11.2).
   */
  framingFault(): string | null {
    if (this.#hosts > 1) return 'more than one host'
    if (this.isUnframed) return null
    if (this.#contentLengths > 1) return 'more than one content-length'
    if (this.#transferEncodings > 1) return 'more than one transfer-encoding'
    if (this.#contentLengths === 1 && this.#transferEncodings === 1) return 'content-length with transfer-encoding'
    if (this.#contentLengths === 1 && !/^\d{1,15}$/.test(this.contentLength)) return 'content-length is no number'
    // Not by `toLowerCase`: it turns the Kelvin sign into a plain k.
    if (this.#transferEncodings === 1 && !/^chunked$/i.test(this.transferEncoding)) return 'unknown transfer-encoding'
    return null
  }
}
