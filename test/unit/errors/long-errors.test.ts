import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { toWire } from '../../../src/core/errors/catalogue.ts'
import {
  codeOf,
  describe as described,
  ERROR_TEXT_MAX,
  messageOf,
  messageWithCauses,
  stackOf,
} from '../../../src/core/errors/description.ts'
import { framesOf } from '../../../src/core/errors/places.ts'
import { deliveryError } from '../../../src/runtime/events/event-server.ts'
import { exceptionOf } from '../../../src/tracing/attributes.ts'

const LONG = 'x'.repeat(5_000_000)
/** Lines that look like frames, blanks and the beginnings of secrets: what expressions stumble over. */
const NASTY = ['\n    at evil (', ' '.repeat(100), 'eyJeyJeyJ', '://a:', 'Bearer aB1'].join('').repeat(20_000)
const here = new Error('here')

function withStack(error: Error, stack: unknown): Error {
  return Object.defineProperty(error, 'stack', { value: stack })
}

/** Each is thrown as it is. */
const THROWN: Record<string, () => unknown> = {
  'a long message': () => new Error(LONG),
  'a long message of many shapes': () => new Error(NASTY),
  'a text': () => LONG,
  'a large object': () => ({ list: Array.from({ length: 50_000 }, (_, n) => ({ n })) }),
  'many bytes': () => new Uint8Array(20_000_000),
  'many bytes in an object': () => ({ picture: { pixels: new Float64Array(5_000_000) } }),
  'many bytes in details': () => Object.assign(new Error('short'), { details: { bytes: new Uint8Array(20_000_000) } }),
  'a long name': () => Object.assign(new Error('short'), { name: LONG }),
  'a long code': () => Object.assign(new Error('short'), { code: LONG }),
  'a long stack': () => withStack(new Error('short'), `Error: short\n${here.stack!.slice(12).repeat(100_000)}`),
  'a stack that is no text': () => withStack(new Error('short'), { toString: () => LONG }),
  'long details': () => Object.assign(new Error('short'), { details: { list: Array(1_000_000).fill(LONG) } }),
  'long causes': () => new Error(LONG, { cause: new Error(LONG, { cause: new Error(LONG) }) }),
  'many errors': () =>
    new AggregateError(
      Array.from({ length: 1000 }, () => new Error('one of many')),
      LONG,
    ),
  'a message that is an object': () => Object.assign(new Error(), { message: { list: Array(500_000).fill(1) } }),
  'a getter that throws': () => Object.defineProperty(new Error(LONG), 'stack', { get: () => assert.fail(LONG) }),
  'a proxy': () =>
    new Proxy(new Error(LONG), { get: (error, name) => (name === 'cause' ? error : Reflect.get(error, name)) }),
  'a symbol': () => Symbol(LONG),
}
/** Everything by which an error leaves its thread. */
const WAYS: Record<string, (thrown: unknown) => unknown> = {
  messageOf,
  messageWithCauses,
  stackOf,
  codeOf,
  described,
  toWire,
  deliveryError,
  exceptionOf,
}

describe('errors with long texts: cut at 4,096 characters before anything looks at them', () => {
  for (const [what, make] of Object.entries(THROWN)) {
    test(what, () => {
      for (const [way, look] of Object.entries(WAYS)) {
        const texts = textsIn(look(make()))
        for (const text of texts) assert.ok(text.length <= 2 * ERROR_TEXT_MAX, `${way}: ${text.length} characters`)
      }
      assert.ok(messageOf(make()).length <= ERROR_TEXT_MAX)
      assert.ok((stackOf(make()) ?? '').length <= ERROR_TEXT_MAX)
    })
  }

  test('the frames of the plugin are still there', () => {
    assert.deepEqual(framesOf(new Error(LONG))[0]?.file, import.meta.filename)
    assert.deepEqual(framesOf(new Error(NASTY))[0]?.file, import.meta.filename)
    assert.match(messageOf(new Error(LONG)), /^x{4000}x*… \[cut: it had 5000000 characters\]$/)
  })

  test('short ones are as they were', () => {
    const error = Object.assign(new Error('short'), { code: 'E_SHORT', details: { a: [1] } })
    assert.deepEqual(described(error), { message: 'short', stack: error.stack, code: 'E_SHORT', details: { a: [1] } })
  })
})

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}
