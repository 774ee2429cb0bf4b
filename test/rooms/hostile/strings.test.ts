// Texts that mean something to somebody on the way reach a handler as they are, wherever they stand in a request.
import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { itHolds } from '../../support/listener.ts'
import { assertOurs, jsonOf, RawConnection, type RawResponse, requestText } from '../../support/raw-client.ts'
import { shareHeddle } from '../../support/shared-process.ts'
import { parseAnswers } from './answers.ts'
import { NAUGHTY } from './naughty-strings.ts'
import { TARGET } from './target.ts'

afterEach(() => forget())
const heddle = shareHeddle(TARGET)

const ALL = Object.values(NAUGHTY).flat()
const DEL = '\x7f'
const JSON_BODY = { 'content-type': 'application/json' }
const FORM_BODY = { 'content-type': 'application/x-www-form-urlencoded' }
const MULTIPART_BODY = { 'content-type': 'multipart/form-data; boundary=cut' }

const shortOf = (text: string): string => JSON.stringify(text.slice(0, 40))
const post = (headers: Record<string, string>, body: string): Buffer => requestText('POST', '/w/echo', headers, body)
const part = (disposition: string, content: string): string =>
  `--cut\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n${content}\r\n--cut--\r\n`

/** Refused wherever a client sends them as a key. */
const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype'])
const isReserved = (key: string): boolean => key.startsWith('_auth') || key.startsWith('_files')
const underKey = (key: string, value: unknown): object | null =>
  FORBIDDEN.has(key) ? null : isReserved(key) ? {} : { [key]: value }

/** Requests that bring a text, and what a handler gets of each; null where it is answered 400. */
const PLACES: Record<string, (text: string, encoded: string) => [request: Buffer, data: object | null][]> = {
  // A dot is no step up: nobody resolves paths.
  'the path': (text, encoded) => [
    [requestText('GET', `/w/echo/${encoded}`), text.includes('\0') ? null : { id: text }],
  ],
  'the query, as value and as key': (text, encoded) => [
    [requestText('GET', `/w/echo?q=${encoded}`), { q: text }],
    [requestText('GET', `/w/echo?${encoded}=v`), underKey(text, 'v')],
  ],
  'JSON, as value and as key': (text) => [
    [post(JSON_BODY, JSON.stringify({ q: text })), { q: text }],
    [post(JSON_BODY, `{${JSON.stringify(text)}:1}`), underKey(text, 1)],
  ],
  'a form': (text) => [[post(FORM_BODY, new URLSearchParams({ q: text }).toString()), { q: text }]],
  'a part of an upload': (text) => [[post(MULTIPART_BODY, part('name="q"', text)), { q: text, _files: [] }]],
}

describe(`naughty strings: ${ALL.length}`, () => {
  for (const [place, requestsOf] of Object.entries(PLACES)) {
    it(`come back from ${place}`, async () => {
      for (const text of ALL) {
        for (const [request, data] of requestsOf(text, encodeURIComponent(text))) {
          const response = await ask(request)
          assert.equal(response.status, data === null ? 400 : 200, `${shortOf(text)}: ${response.body}`)
          if (data !== null) assert.deepEqual(jsonOf(response).data.data, data, shortOf(text))
        }
      }
    })
  }

  it('name a file, or are refused', async () => {
    for (const text of ALL) {
      const { status } = await ask(post(MULTIPART_BODY, part(`name="${text}"; filename="${text}"`, 'x')))
      assert.ok(status === 200 || status === 400, `${status} for a file named ${shortOf(text)}`)
    }
  })

  const assertInHeader = async (texts: readonly string[]): Promise<void> => {
    for (const text of texts) {
      const raw = Buffer.from(text).toString('latin1')
      const head = requestText('GET', '/w/echo', { 'x-note': `<${raw}>` })
      if ([...text].some((char) => char < ' ' && char !== '\t')) {
        await assertNo5xx(head)
        continue
      }
      const answer = await ask(head)
      assert.equal(answer.status, 200, shortOf(text))
      assert.equal(jsonOf(answer).data.headers['x-note'], `<${text}>`, shortOf(text))
    }
  }

  it('come back from a header, but for what a header cannot hold', () =>
    assertInHeader(ALL.filter((text) => !text.includes(DEL))))

  itHolds(it, 'come back from a header, with the DEL that it may not have', () =>
    assertInHeader(ALL.filter((text) => text.includes(DEL))),
  )

  it('come back from a stream, one line a frame', async () => {
    for (const text of ALL) {
      const response = await fetch(`http://127.0.0.1:${heddle.port}/w/say-back?q=${encodeURIComponent(text)}`)
      const frames = (await response.text()).split('\n\n').filter((frame) => frame !== '' && !frame.startsWith(':'))
      assert.equal(frames.length, 1, shortOf(text))
      assert.match(frames[0]!, /^data: [^\r\n]*$/, shortOf(text))
      assert.deepEqual(JSON.parse(frames[0]!.slice('data: '.length)), { q: text }, shortOf(text))
    }
  })

  it('are no 5xx when they stand in a request as they are, not encoded at all', async () => {
    for (const text of ALL) {
      const raw = Buffer.from(text).toString('latin1')
      const headers = { [raw]: 'x', 'x-request-id': raw, authorization: raw, cookie: raw, origin: raw }
      for (const request of [
        requestText('GET', `/w/echo/${raw}`),
        requestText('GET', `/w/echo?q=${raw}`),
        requestText('GET', `/${raw}`),
        requestText(raw, '/w/echo'),
        requestText('GET', '/w/echo', headers),
        post({ 'content-type': raw }, text),
        post({ 'content-encoding': raw, ...JSON_BODY }, text),
      ])
        await assertNo5xx(request)
    }
  })
})

let kept: RawConnection | undefined

/** On one connection for as long as all goes well: to open thousands takes longer than what is asked. */
async function ask(request: Buffer): Promise<RawResponse> {
  kept ??= await RawConnection.open(heddle.port)
  await kept.send(request)
  const response = await kept.response()
  assertOurs(response)
  if (response.status !== 200) forget()
  return response
}

function forget(): void {
  kept?.drop()
  kept = undefined
}

/** But 505: a library that cannot read a request at all takes it for a wrong version. */
async function assertNo5xx(request: Buffer): Promise<void> {
  const connection = await RawConnection.open(heddle.port)
  await connection.send(request)
  // What comes before the connection is quiet; one that asks to be closed is so at once.
  await connection.arrival(30)
  const { rest } = connection
  connection.drop()
  for (const { status } of parseAnswers(rest).all)
    assert.ok(status < 500 || status === 505, `${status} for ${shortOf(request.toString('latin1'))}`)
}
