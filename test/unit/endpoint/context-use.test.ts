import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInThisContext } from 'node:vm'
import type { Hook, Route } from '../../../src/contracts/http.ts'
import type { EndpointOptions } from '../../../src/contracts/http-request.ts'
import { Hooks, ignoresHeaders, mayRead } from '../../../src/runtime/endpoint/route.ts'

type Fields = Record<string, unknown>

class Handlers {
  readonly context: unknown = null
  one(data: Fields): unknown {
    return data
  }
  async later({ name, id: other }: Fields): Promise<unknown> {
    return [name, other]
  }
  *steps(data: Fields): Generator<unknown> {
    yield data
  }
  #own(): unknown {
    return this.context
  }
  get own(): () => unknown {
    return this.#own
  }
}

const handlers = new Handlers()

const BLIND: Record<string, (...args: never[]) => unknown> = {
  'no parameter': () => 1,
  'an arrow without parentheses': Object.assign((data: Fields) => data, {}),
  'an async arrow': async (data: Fields) => data,
  'fields by name': ({ name }: Fields) => name,
  'fields with other names': ({ name: first, other }: Fields) => [first, other],
  'a function': function named(data: Fields) {
    return data
  },
  'a method': handlers.one,
  'an async method': handlers.later,
  'a generator': handlers.steps,
  'a private method': handlers.own,
}

const SEEING: Record<string, (...args: never[]) => unknown> = {
  'a second parameter': (_data: Fields, context: unknown) => context,
  'a second one with a default': (_data: Fields, context: unknown = null) => context,
  'all that come': (...all: unknown[]) => all,
  'the rest': (_data: Fields, ...rest: unknown[]) => rest,
  'its arguments': function named() {
    // biome-ignore lint/complexity/noArguments: what is looked for
    return arguments
  },
  'a bound function': handlers.one.bind(handlers),
  'a built-in function': Math.max as (...args: never[]) => unknown,
  'a default with a function in it': ({ name = String('a, (') }: Fields) => name,
  'what a proxy stands for': new Proxy(handlers.one, {}),
}

test('headers are left out for handlers that cannot see them', () => {
  for (const [what, handler] of Object.entries(BLIND)) assert.equal(ignoresHeaders(handler, {}), true, what)
})

test('headers are copied for whatever may see them', () => {
  for (const [what, handler] of Object.entries(SEEING)) assert.equal(ignoresHeaders(handler, {}), false, what)
  const options: EndpointOptions[] = [
    { authValidator: () => ({}) },
    { idempotency: 'optional' },
    { etag: true },
    { body: 'stream' as never },
  ]
  for (const each of options) assert.equal(ignoresHeaders(BLIND['no parameter']!, each), false, JSON.stringify(each))
})

// As text, so that no compiler changes what is looked at.
const WITHOUT_USER = [
  '() => 1',
  'data => data',
  'async data => data',
  '(data) => data',
  '(data, context) => context.setStatus(201)',
  '(data, context) => { if (context.route) context.commit((tx) => tx) }',
  'async (data, { headers, method: verb }) => headers[verb]',
  'function handle(data, context) { return context.userAgent }',
  'async function* (data, context) { yield context.path }',
  '({ id }, context) => this.context + context.ip',
  '(data, $) => $.path',
]

const WITH_USER = [
  '(data, context) => context.user',
  '(data, context) => [context.user.id]',
  '(data, context) => who(context)',
  '(data, context) => ({ ...context })',
  '(data, context) => { const { user } = context }',
  "(data, context) => context['user']",
  '(data, context) => context?.user',
  '(data, context) => context\n.user',
  '(data, { user }) => user',
  '(data, { user: { id } }) => id',
  '(data, { user: who, headers }) => who',
  '(data, { headers, ...rest }) => rest',
  '({ a: { b } }, context) => context.user',
  '(data = {}, context) => context.user',
  '(data, context = {}) => context.path',
  '(...all) => all',
  'function () { return arguments[1] }',
  '(data, context) => eval("context")',
  '(data, $) => $.user',
]

for (const source of WITHOUT_USER)
  test(`who calls does not matter to ${source}`, () => assert.equal(mayRead('user', functionOf(source), 1), false))

for (const source of WITH_USER)
  test(`who calls may matter to ${source}`, () => assert.equal(mayRead('user', functionOf(source), 1), true))

const OWNER = { name: 'shop.Sell', instance: undefined }
const routeOf = (handler: string, options: object = {}): Route =>
  ({ kind: 'endpoint', owner: OWNER, method: 'GET', path: '/', handler: functionOf(handler), options }) as Route
const BLIND_ROUTE = '(data, context) => context.path'

test('ignoresAddress(): returns false when the handler may read ip, wherever its context is', () => {
  const none = new Hooks()
  assert.equal(none.ignoresAddress(routeOf('({ name }) => name')), true)
  assert.equal(none.ignoresAddress(routeOf(BLIND_ROUTE)), true)
  for (const handler of ['(data, context) => context.ip', '(data, { ip }) => ip', '(data, context) => who(context)'])
    assert.equal(none.ignoresAddress(routeOf(handler)), false, handler)
  const stream = { ...routeOf('(data, stream, context) => context.ip'), kind: 'stream' } as Route
  assert.equal(none.ignoresAddress(stream), false)
  assert.equal(none.ignoresAddress({ ...stream, kind: 'socket' } as Route), false)
  const scoped = { idempotency: 'optional', idempotencyScope: functionOf('(context) => context.ip') }
  assert.equal(none.ignoresAddress(routeOf(BLIND_ROUTE, scoped)), false)
})

test('ignoresAddress(): returns false when a guard or hook of the route may read ip', () => {
  for (const [kind, run] of [
    ['before', '(data, context) => { if (context.ip === "") throw 1 }'],
    ['after', '(result, { ip }) => ({ ...result, ip })'],
    ['onError', '(error, context) => log(context)'],
    ['identify', '(context) => find(context)'],
    ['identify', '(context, again) => again.ip'],
  ] as const) {
    const hooks = new Hooks()
    hooks.add({ kind, owner: OWNER, run: functionOf(run) as Hook['run'], throws: undefined, place: '' })
    const reading = '(data, context) => context.user'
    assert.equal(hooks.ignoresAddress(routeOf(reading)), false, run)
  }
  const guarded = (guard: string) => new Hooks().ignoresAddress(routeOf(BLIND_ROUTE, { guards: [functionOf(guard)] }))
  assert.equal(guarded('(data, context) => context.ip'), false)
  assert.equal(guarded('(data, context) => context.path'), true)
})

test('who calls may matter to what hides its source, and to methods', () => {
  const reads = { show: (_data: unknown, context: { user: unknown }) => context.user }
  assert.equal(mayRead('user', reads.show.bind(reads), 1), true)
  const plugin = {
    async 'say it'(_data: unknown, context: { user: unknown }) {
      return context.user
    },
    async say(_data: unknown, context: { path: string }) {
      return context.path
    },
  }
  assert.equal(mayRead('user', plugin['say it'], 1), true)
  assert.equal(mayRead('user', plugin.say, 1), false)
  assert.equal(
    mayRead('user', (context: { path: string }) => context.path, 0),
    false,
  )
  assert.equal(
    mayRead('user', (context: { user: unknown }) => context.user, 0),
    true,
  )
})

function functionOf(source: string): unknown {
  return runInThisContext(`(${source})`)
}
