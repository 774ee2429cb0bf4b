import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { itHolds } from '../../support/listener.ts'
import { assertOurs, jsonOf, RawConnection, type RawResponse, requestText } from '../../support/raw-client.ts'
import { shareHeddle } from '../../support/shared-process.ts'
import { parseAnswers } from './answers.ts'
import { NAUGHTY } from './naughty-strings.ts'
import { TARGET, THREADS } from './target.ts'

afterEach(() => forget())
const heddle = shareHeddle(TARGET)

const NAUGHTY_STRINGS = Object.values(NAUGHTY).flat()
const DEL = '\x7f'

/** Refused wherever a client sends them as a key. */
const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype'])
const isReserved = (key: string): boolean => key.startsWith('_auth') || key.startsWith('_files')

for (const { prefix, some } of THREADS) {
  const ALL = some(NAUGHTY_STRINGS)
  describe(`naughty strings, to ${prefix}: ${ALL.length}`, () => {
    const assertEchoed = (response: RawResponse, expected: object, what: string): void => {
      assert.equal(response.status, 200, `${what}: ${response.body}`)
      assert.deepEqual(jsonOf(response).data.data, expected, what)
    }

    it('come back from the path', async () => {
      for (const text of ALL) {
        const what = JSON.stringify(text.slice(0, 40))
        const response = await ask('GET', `${prefix}/echo/${encodeURIComponent(text)}`)
        if (text.includes('\0')) assert.equal(response.status, 400, what)
        // A dot is no step up here: nobody resolves paths.
        else assertEchoed(response, { id: text }, what)
      }
    })

    it('come back from the query, as value and as key', async () => {
      for (const text of ALL) {
        const what = JSON.stringify(text.slice(0, 40))
        const encoded = encodeURIComponent(text)
        assertEchoed(await ask('GET', `${prefix}/echo?q=${encoded}`), { q: text }, what)
        const asKey = await ask('GET', `${prefix}/echo?${encoded}=v`)
        if (FORBIDDEN.has(text)) assert.equal(asKey.status, 400, what)
        else assertEchoed(asKey, isReserved(text) ? {} : { [text]: 'v' }, what)
      }
    })

    it('come back from JSON and from forms, as value and as key', async () => {
      for (const text of ALL) {
        const what = JSON.stringify(text.slice(0, 40))
        const form = new URLSearchParams({ q: text }).toString()
        const types = {
          json: { 'content-type': 'application/json' },
          form: { 'content-type': 'application/x-www-form-urlencoded' },
        }
        assertEchoed(await ask('POST', `${prefix}/echo`, types.json, JSON.stringify({ q: text })), { q: text }, what)
        assertEchoed(await ask('POST', `${prefix}/echo`, types.form, form), { q: text }, what)
        const key = `{${JSON.stringify(text)}:1}`
        const asKey = await ask('POST', `${prefix}/echo`, types.json, key)
        if (FORBIDDEN.has(text)) assert.equal(asKey.status, 400, what)
        else assertEchoed(asKey, isReserved(text) ? {} : { [text]: 1 }, what)
      }
    })

    it('come back from a part of an upload, and name a file', async () => {
      for (const text of ALL) {
        const what = JSON.stringify(text.slice(0, 40))
        const body = `--cut\r\ncontent-disposition: form-data; name="q"\r\n\r\n${text}\r\n--cut--\r\n`
        const type = { 'content-type': 'multipart/form-data; boundary=cut' }
        assertEchoed(await ask('POST', `${prefix}/echo`, type, body), { q: text, _files: [] }, what)
        const named = `--cut\r\ncontent-disposition: form-data; name="${text}"; filename="${text}"\r\n\r\nx\r\n--cut--\r\n`
        const { status } = await ask('POST', `${prefix}/echo`, type, named)
        assert.ok(status === 200 || status === 400, `${status} for a file named ${what}`)
      }
    })

    const assertInHeader = async (texts: readonly string[]): Promise<void> => {
      for (const text of texts) {
        const what = JSON.stringify(text.slice(0, 40))
        const raw = Buffer.from(text).toString('latin1')
        const head = requestText('GET', `${prefix}/echo`, { 'x-note': `<${raw}>` })
        if ([...text].some((char) => char < ' ' && char !== '\t')) {
          for (const { status } of parseAnswers(await everything(head)).all)
            assert.ok(status < 500, `${status} for ${what}`)
          continue
        }
        const answer = await askAsIs(head)
        assert.equal(answer.status, 200, what)
        assert.equal(jsonOf(answer).data.headers['x-note'], `<${text}>`, what)
      }
    }

    it('come back from a header, but for what a header cannot hold', () =>
      assertInHeader(ALL.filter((text) => !text.includes(DEL))))

    itHolds(it, 'come back from a header, with the DEL that it may not have', () =>
      assertInHeader(NAUGHTY_STRINGS.filter((text) => text.includes(DEL))),
    )

    it('come back from a stream, one line a frame', async () => {
      for (const text of ALL) {
        const what = JSON.stringify(text.slice(0, 40))
        const response = await fetch(`http://127.0.0.1:${heddle.port}${prefix}/say-back?q=${encodeURIComponent(text)}`)
        const frames = (await response.text()).split('\n\n').filter((frame) => frame !== '' && !frame.startsWith(':'))
        assert.equal(frames.length, 1, what)
        assert.match(frames[0]!, /^data: [^\r\n]*$/, what)
        assert.deepEqual(JSON.parse(frames[0]!.slice('data: '.length)), { q: text }, what)
      }
    })

    it('are no 5xx when they stand in a request as they are, not encoded at all', async () => {
      for (const text of ALL) {
        const raw = Buffer.from(text).toString('latin1')
        for (const bytes of [
          requestText('GET', `${prefix}/echo/${raw}`),
          requestText('GET', `${prefix}/echo?q=${raw}`),
          requestText('GET', `/${raw}`),
          requestText(raw, `${prefix}/echo`),
          requestText('GET', `${prefix}/echo`, {
            [raw]: 'x',
            'x-request-id': raw,
            authorization: raw,
            cookie: raw,
            origin: raw,
          }),
          requestText('POST', `${prefix}/echo`, { 'content-type': raw }, text),
          requestText('POST', `${prefix}/echo`, { 'content-encoding': raw, 'content-type': 'application/json' }, text),
        ]) {
          for (const { status } of parseAnswers(await everything(bytes)).all) {
            assert.ok(
              status < 500 || status === 505,
              `${status} for ${JSON.stringify(bytes.toString('latin1').slice(0, 80))}`,
            )
          }
        }
      }
    })
  })
}

let kept: RawConnection | undefined

/** On one connection for as long as all goes well: to open thousands takes longer than what is asked. */
async function askAsIs(bytes: Buffer): Promise<RawResponse> {
  kept ??= await RawConnection.open(heddle.port)
  await kept.send(bytes)
  const response = await kept.response()
  assertOurs(response)
  if (response.status !== 200) forget()
  return response
}

const ask = (...request: Parameters<typeof requestText>): Promise<RawResponse> => askAsIs(requestText(...request))

function forget(): void {
  kept?.drop()
  kept = undefined
}

/** What comes before the connection is quiet; one that asks to be closed is so at once. */
async function everything(bytes: Buffer): Promise<Buffer> {
  const connection = await RawConnection.open(heddle.port)
  await connection.send(bytes)
  await connection.arrival(30)
  const { rest } = connection
  connection.drop()
  return rest
}
