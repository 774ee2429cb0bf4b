import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { HeddleError } from '../../../src/core/errors/catalogue.ts'
import { jsonAnswer } from '../../../src/runtime/endpoint/json-answer.ts'

const source = { plugin: 'shop.List', method: 'GET', route: '/items' }

function* count() {
  yield 1
}
async function* countLater() {
  yield 1
}
class Money {
  cents = 5
}

test('what JSON cannot hold is refused, with its type and the mend, wherever it stands', () => {
  const unfit: [unknown, RegExp][] = [
    [
      new Map([['a', 1]]),
      /a Map(?: as data(?:\.list\[0\])?)?, which JSON cannot hold: write Object\.fromEntries\(map\)$/,
    ],
    [new Set([1]), /a Set.*: write \[\.\.\.set\]$/],
    [new TypeError('no'), /a TypeError.*: throw it/],
    [new Response('x'), /a Response.*await response\.json\(\)/],
    [Promise.resolve(1), /a Promise.*: await it$/],
    [count(), /a generator.*: write \[\.\.\.generator\]$/],
    [countLater(), /an async generator/],
    [new ReadableStream(), /a ReadableStream.*: read it first/],
    [/x/, /a RegExp/],
    [new ArrayBuffer(1), /a ArrayBuffer.*sendBinary/],
  ]
  for (const [value, message] of unfit) {
    for (const answer of [value, { success: true, data: value }, { success: true, data: { list: [value] } }]) {
      assert.throws(
        () => jsonAnswer(answer, source),
        (error) =>
          error instanceof HeddleError &&
          error.code === 'HTTP_ANSWER_INVALID' &&
          error.message.startsWith('shop.List answered GET /items with ') &&
          message.test(error.message),
        `${message}`,
      )
    }
  }
  // These have members that JSON can hold.
  for (const value of [Buffer.from('a'), Readable.from(['a']), Object.assign(new Error('no'), { code: 'A' })]) {
    assert.throws(() => jsonAnswer(value, source), /which JSON cannot hold/)
    assert.throws(() => jsonAnswer({ success: true, data: value }, source), / as data, which JSON cannot hold/)
  }
  assert.throws(() => jsonAnswer({ a: { b: 1n } }, source), /a bigint as a\.b, which JSON cannot hold/)
  assert.throws(() => jsonAnswer(() => 1, source), /with a function/)
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  assert.throws(() => jsonAnswer(cycle, source), /circular/)
})

/** From Node 26 on JSON.stringify nests as deep as there is memory. */
function nestsWithoutEnd(value: object): boolean {
  try {
    return JSON.stringify(value) !== ''
  } catch {
    return false
  }
}

test('an answer is searched in a time that grows with its size, however deep it is nested, and one that is too deep is named', () => {
  const nested = (depth: number, innermost: object): object => {
    let value = innermost
    for (let n = 0; n < depth; n++) value = { next: value }
    return value
  }
  const msOf = (run: () => unknown): number => {
    const startedMs = performance.now()
    run()
    return performance.now() - startedMs
  }
  jsonAnswer(nested(1000, {}), source)
  assert.ok(msOf(() => jsonAnswer(nested(2000, {}), source)) < 200, 'it took 1.8 s')
  assert.throws(() => jsonAnswer(nested(2000, new Map()), source), /a Map as ….*next\.next, which JSON cannot hold/)
  const deepest = nested(200_000, {})
  const isRefused = (error: unknown): boolean => {
    assert.match(String(error), /shop\.List answered GET \/items with a value that is too large, or nested too deeply/)
    return true
  }
  const answered = () => {
    if (nestsWithoutEnd(deepest)) assert.equal(jsonAnswer(deepest, source).length, 200_000 * '{"next":}'.length + 2)
    else assert.throws(() => jsonAnswer(deepest, source), isRefused)
  }
  assert.ok(msOf(answered) < 3000)
  const bottomless = (): object => Object.defineProperty({}, 'inner', { get: bottomless, enumerable: true })
  if (!nestsWithoutEnd(deepest)) assert.throws(() => jsonAnswer(bottomless(), source), isRefused)
  const shared = {}
  assert.equal(jsonAnswer({ one: shared, two: [shared] }, source), '{"one":{},"two":[{}]}', 'no circle')
})

test('everything else is sent as JSON.stringify makes it', () => {
  const list = Object.assign(new Map(), { toJSON: () => ({ of: 'its own' }) })
  for (const answer of [
    null,
    1,
    'a {}',
    [],
    {},
    { a: {} },
    [{}, { b: [] }],
    new Date(0),
    new Money(),
    list,
    { list },
  ]) {
    assert.equal(jsonAnswer(answer, source), JSON.stringify(answer))
  }
  assert.equal(
    jsonAnswer({ at: new URL('http://a.example/'), none: undefined, e: {} }, source),
    '{"at":"http://a.example/","e":{}}',
  )
  assert.equal(jsonAnswer(undefined, source), 'null')
  assert.equal(jsonAnswer(Object.create(null), source), '{}')
})
