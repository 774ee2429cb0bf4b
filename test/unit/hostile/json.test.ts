// JSON bodies of any shape are what JavaScript reads in them, or refused. What a client hears of it: test/claims/bad-input.test.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJsonBody } from '../../../src/runtime/endpoint/input/parse.ts'
import { SEED } from '../../support/random.ts'
import { INVALID, NOT_UTF8, REFUSED, VALID } from './json-texts.ts'

const parse = (body: string | Buffer): unknown => parseJsonBody(Buffer.from(body as string))

test(`${VALID.length} valid bodies reach the handler as JavaScript reads them, seed ${SEED}`, () => {
  // What a JavaScript text has beyond UTF-8, half a character, is not sent.
  for (const body of VALID) assert.deepEqual(parse(body), JSON.parse(Buffer.from(body).toString()), body.slice(0, 60))
})

for (const [why, bodies] of [
  ['invalid', INVALID],
  ['not UTF-8', NOT_UTF8],
  ['too deep or able to reach a prototype', REFUSED],
] as const) {
  test(`${bodies.length} bodies are refused that are ${why}, seed ${SEED}`, () => {
    for (const body of bodies)
      assert.throws(() => parse(body), { code: 'HTTP_BAD_REQUEST' }, JSON.stringify(body.toString().slice(0, 60)))
  })
}
