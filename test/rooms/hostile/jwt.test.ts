// Tokens at a guarded route: what stands around one in its header. Which token is none: test/unit/auth/token.test.ts.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { BAD, BODY, CLAIMS, GOOD, HEAD, HEADER, nowSec, SIGNATURE, token } from '../../support/bad-tokens.ts'
import { ask, assertFailure, jsonOf, RawConnection, type RawResponse } from '../../support/raw-client.ts'
import { shareHeddle } from '../../support/shared-process.ts'
import { TARGET } from './target.ts'

const heddle = shareHeddle(TARGET)
const REFUSED = /^(Missing authorization token|Invalid or expired token)$/

/** `*` stands for a good token. */
const BAD_HEADERS = [
  ...'| |*|Bearer|Bearer |Bearer*|Bearer: *|Bearer=*|Bearerr *|Bear *|Ｂearer *|Basic *|JWT *|Token *'.split('|'),
  ...'Bearer * *|Bearer *, Bearer *|Bearer *,|Bearer "*"|Bearer <*>|Bearer Bearer *|Bearer\t*|Bearer * x'.split('|'),
  ...'Bearer token=*|Bearer null|Bearer undefined|Bearer [object Object]|Bearer true|Bearer 0'.split('|'),
  `Bearer ${HEAD} .${BODY}.${SIGNATURE}`,
  `Bearer ${HEAD}.\t${BODY}.${SIGNATURE}`,
].map((header) => header.replaceAll('*', GOOD))

async function enter(...authorization: string[]): Promise<RawResponse> {
  const connection = await RawConnection.open(heddle.port)
  const lines = authorization.map((value) => `authorization: ${value}\r\n`)
  await connection.send(Buffer.from(`GET /w/me HTTP/1.1\r\nhost: test\r\n${lines.join('')}\r\n`, 'utf8'))
  const response = await connection.response()
  connection.drop()
  return response!
}

it('a good token opens the route', async () => {
  for (const good of [
    GOOD,
    token({ alg: 'HS256' }, CLAIMS),
    token({ ...HEADER, typ: 'at+jwt', kid: 'x' }, CLAIMS),
    token(HEADER, { ...CLAIMS, sub: 'ünï 𝄞', nbf: nowSec - 5 }),
  ]) {
    const response = await enter(`Bearer ${good}`)
    assert.equal(response.status, 200, good)
    const { sub } = JSON.parse(Buffer.from(good.split('.')[1]!, 'base64url').toString())
    assert.equal(jsonOf(response).data.sub, sub)
  }
  const made = jsonOf(await ask(heddle.port, 'GET', '/w/token/ada')).data
  assert.equal(jsonOf(await enter(`bearer  ${made}`)).data.sub, 'ada')
})

for (const [why, [bad]] of Object.entries(BAD))
  it(`a token is refused with ${why}`, async () => assertFailure(await enter(`Bearer ${bad}`), 401, REFUSED))

it(`a header is refused that is none: ${BAD_HEADERS.length}`, async () => {
  for (const header of BAD_HEADERS) assertFailure(await enter(header), 401, REFUSED)
})

it('two headers are refused, whatever they bring', async () => {
  for (const [first, second] of [
    [GOOD, 'bad'],
    ['bad', GOOD],
    [GOOD, GOOD],
  ])
    assertFailure(await enter(`Bearer ${first}`, `Bearer ${second}`), 401, 'Missing authorization token')
})
