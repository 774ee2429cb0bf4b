import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SEED } from '../../support/random.ts'
import { ask, jsonOf } from '../../support/raw-client.ts'
import { shareHeddle } from '../../support/shared-process.ts'
import { INVALID, NOT_UTF8, REFUSED, VALID } from './json-texts.ts'
import { TARGET, THREADS } from './target.ts'

const heddle = shareHeddle(TARGET)
const JSON_BODY = { 'content-type': 'application/json' }
const ANSWERED_WITHIN_MS = 5_000

for (const { prefix, some } of THREADS) {
  describe(`JSON bodies of any shape, to ${prefix}, seed ${SEED}`, { concurrency: true }, () => {
    const send = async (body: string | Buffer, target = '/mirror') => {
      const startedMs = performance.now()
      const response = await ask(heddle.port, 'POST', prefix + target, JSON_BODY, body)
      const tookMs = performance.now() - startedMs
      const what = JSON.stringify(body.toString().slice(0, 60))
      assert.ok(tookMs < ANSWERED_WITHIN_MS, `${what} took ${tookMs} ms`)
      return { response, what }
    }

    it(`reach the handler as JavaScript reads them: ${some(VALID).length} valid ones`, async () => {
      for (const body of some(VALID)) {
        const { response, what } = await send(body)
        assert.equal(response.status, 200, what)
        // What a JavaScript text has beyond UTF-8, half a character, is not sent.
        const value = JSON.parse(Buffer.from(body).toString())
        const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
        const { fields, body: other } = jsonOf(response).data
        // What came out of the handler went through JSON once more: infinities are null there.
        assert.deepEqual(isObject ? fields : other, JSON.parse(JSON.stringify(value)), what)
      }
    })

    for (const [why, bodies] of [
      ['invalid ones', INVALID],
      ['not UTF-8', NOT_UTF8],
      ['too deep or able to reach a prototype', REFUSED],
    ] as const) {
      it(`are answered 400: ${some<string | Buffer>(bodies).length} ${why}`, async () => {
        for (const body of some<string | Buffer>(bodies)) {
          const { response, what } = await send(body)
          assert.equal(response.status, 400, what)
          assert.equal(jsonOf(response).success, false)
        }
      })
    }

    it('are answered 400 or 422 where a schema waits for something else', async () => {
      const all = [...VALID, ...INVALID, ...NOT_UTF8, ...REFUSED]
      for (const body of some(all.filter((_, n) => n % 4 === 0))) {
        const { response, what } = await send(body, '/checked/1')
        assert.ok(response.status === 400 || response.status === 422, `${response.status} for ${what}`)
      }
    })
  })
}
