import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BAD, BODY, CLAIMS, GOOD, HEAD, HEADER, nowSec, SIGNATURE, token } from '../../support/bad-tokens.ts'
import { itHolds } from '../../support/listener.ts'
import { ask, assertFailure, jsonOf, RawConnection } from '../../support/raw-client.ts'
import { shareHeddle } from '../../support/shared-process.ts'
import { TARGET, THREADS } from './target.ts'

const heddle = shareHeddle(TARGET)

/** Beside the scheme, what stands around a token in its header. */
const BAD_HEADERS = [
  ...[
    '',
    ' ',
    'Bearer',
    'Bearer ',
    `Bearer${GOOD}`,
    GOOD,
    `Basic ${GOOD}`,
    `JWT ${GOOD}`,
    `Token ${GOOD}`,
    `Bearer: ${GOOD}`,
    `Bearer=${GOOD}`,
  ],
  ...[
    `Bearer ${GOOD} ${GOOD}`,
    `Bearer ${GOOD}, Bearer ${GOOD}`,
    `Bearer ${GOOD},`,
    `Bearer "${GOOD}"`,
    `Bearer <${GOOD}>`,
    `Bearer Bearer ${GOOD}`,
  ],
  ...[
    `Bearer\t${GOOD}`,
    `Bearer ${HEAD} .${BODY}.${SIGNATURE}`,
    `Bearer ${HEAD}.\t${BODY}.${SIGNATURE}`,
    `Bearer ${GOOD} x`,
    `Bearer token=${GOOD}`,
  ],
  ...[
    'Bearer null',
    'Bearer undefined',
    'Bearer [object Object]',
    'Bearer true',
    'Bearer 0',
    `Bearerr ${GOOD}`,
    `Bear ${GOOD}`,
    `Ｂearer ${GOOD}`,
  ],
]

for (const { prefix, some } of THREADS) {
  describe(`tokens, at a guarded route of ${prefix}`, () => {
    /** Null where the library refuses the header itself: it has a control character. */
    const enter = async (authorization: string) => {
      const connection = await RawConnection.open(heddle.port)
      await connection.send(
        Buffer.from(`GET ${prefix}/me HTTP/1.1\r\nhost: test\r\nauthorization: ${authorization}\r\n\r\n`, 'utf8'),
      )
      const hasControl = [...authorization].some((char) => char < ' ' && char !== '\t')
      if (hasControl) {
        await connection.closed(2_000)
        assert.match(connection.rest.toString('latin1'), /^HTTP\/1\.1 400 /)
        return null
      }
      const response = await connection.response()
      connection.drop()
      return response!
    }

    it('open it when they are good', async () => {
      for (const good of [
        GOOD,
        token({ alg: 'HS256' }, CLAIMS),
        token({ ...HEADER, typ: 'at+jwt', kid: 'x' }, CLAIMS),
        token(HEADER, { ...CLAIMS, sub: 'ünï 𝄞', nbf: nowSec - 5 }),
      ]) {
        const response = await enter(`Bearer ${good}`)
        assert.equal(response?.status, 200, good)
        assert.equal(
          jsonOf(response!).data.sub,
          JSON.parse(Buffer.from(good.split('.')[1]!, 'base64url').toString()).sub,
        )
      }
      const made = jsonOf(await ask(heddle.port, 'GET', `${prefix}/token/ada`)).data
      assert.equal(jsonOf((await enter(`bearer  ${made}`))!).data.sub, 'ada')
    })

    for (const [why, tokens] of Object.entries(BAD)) {
      itHolds(it, `are refused: ${tokens.length} with ${why}`, async () => {
        for (const bad of some(tokens)) {
          const response = await enter(`Bearer ${bad}`)
          if (response === null) continue
          assertFailure(response, 401, /^(Missing authorization token|Invalid or expired token)$/)
        }
      })
    }

    it(`are refused when their header is none: ${BAD_HEADERS.length}`, async () => {
      for (const header of some(BAD_HEADERS)) {
        assertFailure(await enter(header), 401, /^(Missing authorization token|Invalid or expired token)$/)
      }
    })

    it('are refused when two headers bring two', async () => {
      for (const [first, second] of [
        [GOOD, 'bad'],
        ['bad', GOOD],
        [GOOD, GOOD],
      ]) {
        const connection = await RawConnection.open(heddle.port)
        await connection.send(
          `GET ${prefix}/me HTTP/1.1\r\nhost: test\r\nauthorization: Bearer ${first}\r\nAuthorization: Bearer ${second}\r\n\r\n`,
        )
        assertFailure(await connection.response(), 401, 'Missing authorization token')
        connection.drop()
      }
    })
  })
}
