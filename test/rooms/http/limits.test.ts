import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  ask,
  assertFailure,
  assertOurs,
  headerOf,
  jsonOf,
  RawConnection,
  requestText,
  sendRaw,
} from '../../support/raw-client.ts'
import { assertAnswers, shareHeddle } from '../../support/shared-process.ts'

const LIMIT_BYTES = 100_000
const HEADERS_MAX_BYTES = 16_384
const heddle = shareHeddle({ env: { HTTP_BODY_LIMIT: String(LIMIT_BYTES) } })
const TOO_LARGE = `The request body is larger than ${LIMIT_BYTES} bytes`
const HEADERS_TOO_LARGE = 'The request header fields are too large'

function chunked(bytes: number, chunkBytes: number): string {
  let text = ''
  for (let left = bytes; left > 0; left -= chunkBytes) {
    const size = Math.min(left, chunkBytes)
    text += `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
  }
  return `${text}0\r\n\r\n`
}

describe('the body limit', () => {
  const lengthOf = async (headers: Record<string, string>, body: string): Promise<number> => {
    const response = await ask(heddle.port, 'POST', '/w/echo', headers, body)
    assert.equal(response.status, 200)
    return Buffer.from(jsonOf(response).data.body.base64, 'base64').length
  }

  it('takes a body of exactly the limit, with and without a content-length', async () => {
    assert.equal(await lengthOf({}, 'x'.repeat(LIMIT_BYTES)), LIMIT_BYTES)
    const headers = { 'transfer-encoding': 'chunked' }
    assert.equal(await lengthOf(headers, chunked(LIMIT_BYTES, 4_096)), LIMIT_BYTES)
    assert.equal(await lengthOf(headers, chunked(LIMIT_BYTES, LIMIT_BYTES)), LIMIT_BYTES)
  })

  it('answers 413 for one byte more and for much more, also to a client that sends all of it before it reads', async () => {
    const chunkedHeaders = { 'transfer-encoding': 'chunked' }
    for (const bytes of [LIMIT_BYTES + 1, 5_000_000]) {
      for (const [headers, body] of [
        [{}, 'x'.repeat(bytes)],
        [chunkedHeaders, chunked(bytes, 4_096)],
        [chunkedHeaders, chunked(bytes, bytes)],
      ] as [Record<string, string>, string][]) {
        const connection = await RawConnection.open(heddle.port)
        await connection.send(requestText('POST', '/w/echo', headers, body))
        assertFailure(await connection.response(), 413, TOO_LARGE)
        await connection.send(requestText('GET', '/w/echo/next'))
        assert.equal(jsonOf((await connection.response())!).data.data.id, 'next')
        connection.drop()
      }
    }
  })

  it('answers 413 and closes at once for a length beyond all measure', async () => {
    for (const length of [String(65 << 20), '999999999999999']) {
      const connection = await RawConnection.open(heddle.port)
      await connection.send(requestText('POST', '/w/echo', { 'content-length': length }, ''))
      const response = await connection.response()
      assertFailure(response, 413, TOO_LARGE)
      assert.equal(headerOf(response, 'connection')?.toLowerCase(), 'close')
      await connection.closed(1_000)
    }
  })

  it('runs nothing that stands in a body over the limit', async () => {
    const key = 'in413'
    const smuggled = requestText('GET', `/w/count/${key}`).toString('latin1')
    const connection = await RawConnection.open(heddle.port)
    const body = smuggled.repeat(LIMIT_BYTES / smuggled.length + 1)
    await connection.send(requestText('POST', '/w/echo', {}, body))
    assertFailure(await connection.response(), 413, TOO_LARGE)
    assert.equal(jsonOf(await ask(heddle.port, 'GET', `/w/state/${key}:runs`)).data, null)
    assert.equal(connection.rest.length, 0)
    connection.drop()
  })
})

/** A request whose path, query, header names and header values have this many bytes together, as the runtime counts them. */
function headOf(bytes: number): string {
  const fixed = '/w/echo'.length + 'host'.length + 'test'.length + 'x-pad'.length
  // One separator after each name and each value.
  return `GET /w/echo HTTP/1.1\r\nhost: test\r\nx-pad: ${'a'.repeat(bytes - fixed - 4)}\r\n\r\n`
}

describe('the limit of the request head', () => {
  it('takes 16 KiB and answers 431 to one byte more', async () => {
    const fits = await sendRaw(heddle.port, headOf(HEADERS_MAX_BYTES))
    assertOurs(fits)
    assert.equal(fits.status, 200)
    assertFailure(await sendRaw(heddle.port, headOf(HEADERS_MAX_BYTES + 1)), 431, HEADERS_TOO_LARGE)
  })

  it('answers 431 with its own envelope up to 64 KiB, whether headers or the request line are too long', async () => {
    for (const bytes of [17_000, 40_000, 65_536]) {
      const many = Array.from({ length: 50 }, (_, n) => `x-pad-${n}: ${'a'.repeat(bytes / 50)}\r\n`).join('')
      for (const head of [
        headOf(bytes),
        `GET /w/echo HTTP/1.1\r\nhost: test\r\n${many}\r\n`,
        `GET /${'a'.repeat(bytes)} HTTP/1.1\r\nhost: test\r\n\r\n`,
        `GET /w/echo?${'a'.repeat(bytes)} HTTP/1.1\r\nhost: test\r\n\r\n`,
      ]) {
        const connection = await RawConnection.open(heddle.port)
        await connection.send(head)
        assertFailure(await connection.response(), 431, HEADERS_TOO_LARGE)
        await connection.closed(1_000)
      }
    }
  })

  it('closes for a head beyond all measure, however it is sent', async () => {
    for (const bytes of [100_000, 1_000_000]) {
      for (const head of [
        headOf(bytes),
        `GET /${'a'.repeat(bytes)} HTTP/1.1\r\nhost: test\r\n\r\n`,
        'G'.repeat(bytes),
      ]) {
        const connection = await RawConnection.open(heddle.port)
        await connection.send(head)
        await connection.closed(2_000)
      }
    }
    await assertAnswers(heddle.port)
  })

  it('takes 98 headers and closes for more than 100', async () => {
    const withHeaders = (count: number): string =>
      `GET /w/echo HTTP/1.1\r\nhost: test\r\n${Array.from({ length: count - 1 }, (_, n) => `x-${n}: y\r\n`).join('')}\r\n`
    const fits = await sendRaw(heddle.port, withHeaders(98))
    assertOurs(fits)
    assert.equal(fits.status, 200)
    const connection = await RawConnection.open(heddle.port)
    await connection.send(withHeaders(101))
    await connection.closed(1_000)
    assert.match(connection.rest.toString('latin1'), /^HTTP\/1\.1 431 /)
  })
})
