import assert from 'node:assert/strict'
import { headerOf, parseHead, type RawResponse } from '../../support/raw-client.ts'

/** The pages that stand in the library for its own, which would name it: without a length, since it closes behind them, and filled up with spaces. */
const PAGE_HEAD =
  /^HTTP\/1\.1 (?:400 \r\nconnection: close|(?:431|505) \r\nconnection: close\r\ncontent-type: application\/json)$/
const PAGE_BODY = /^\{"success":false,"error":"[^"]+"\} *$/

/** A client that sends nonsense while its stream is open finds such a page in the middle of it, and then the end. */
function isPage(text: string): boolean {
  const headEnd = text.indexOf('\r\n\r\n')
  return PAGE_HEAD.test(text.slice(0, Math.max(0, headEnd))) && PAGE_BODY.test(text.slice(headEnd + 4))
}

export interface Answers {
  all: RawResponse[]
  /** What it ended in, if not behind an answer: a stream has no end of its own, and may be cut off at any place. */
  cutShort: 'answer' | 'stream' | null
}

/** Everything that came on one connection. @throws for what is not HTTP/1.1, by the letter */
export function parseAnswers(bytes: Buffer): Answers {
  const all: RawResponse[] = []
  let rest = bytes
  while (rest.length > 0) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd < 0) {
      assert.ok(
        'HTTP/1.1 '.startsWith(rest.toString('latin1', 0, 9)),
        `no answer begins with ${rest.toString('latin1')}`,
      )
      return { all, cutShort: 'answer' }
    }
    const response = parseHead(rest.toString('latin1', 0, headEnd))
    rest = rest.subarray(headEnd + 4)
    const taken = takeBody(response, rest)
    if (taken < 0) return { all, cutShort: response.headers.has('transfer-encoding') ? 'stream' : 'answer' }
    rest = rest.subarray(taken)
    all.push(response)
  }
  return { all, cutShort: null }
}

/** How many bytes belong to the answer; -1 when some are missing. */
function takeBody(response: RawResponse, rest: Buffer): number {
  const { status, head } = response
  const length = headerOf(response, 'content-length')
  if (status === 100 || status === 204 || status === 304) {
    assert.equal(length, undefined, head)
    return 0
  }
  if (headerOf(response, 'transfer-encoding') !== undefined) {
    assert.equal(headerOf(response, 'content-type'), 'text/event-stream', head)
    assert.equal(length, undefined, head)
    return takeChunks(response, rest)
  }
  if (length === undefined) {
    assert.match(head, PAGE_HEAD)
    assert.match(rest.toString('latin1'), PAGE_BODY)
    response.body = rest
    return rest.length
  }
  assert.match(length, /^\d+$/)
  if (rest.length < Number(length)) return -1
  response.body = rest.subarray(0, Number(length))
  return Number(length)
}

function takeChunks(response: RawResponse, rest: Buffer): number {
  const pieces: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf('\r\n', at)
    if (lineEnd < 0) return -1
    const size = rest.toString('latin1', at, lineEnd)
    assert.match(size, /^[0-9a-fA-F]+$/, 'no chunk size')
    const end = lineEnd + 2 + Number.parseInt(size, 16)
    if (rest.length < end + 2) return -1
    if (isPage(rest.toString('latin1', end))) return -1
    assert.equal(rest.toString('latin1', end, end + 2), '\r\n', 'no line end behind a chunk')
    pieces.push(rest.subarray(lineEnd + 2, end))
    at = end + 2
    if (end === lineEnd + 2) {
      response.body = Buffer.concat(pieces)
      return at
    }
  }
}
