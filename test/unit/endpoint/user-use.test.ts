import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInThisContext } from 'node:vm'
import { mayReadUser } from '../../../src/runtime/endpoint/route.ts'

// As text, so that no compiler changes what is looked at.
const BLIND = [
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
const SEEING = [
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

for (const source of BLIND)
  test(`who calls does not matter to ${source}`, () => assert.equal(mayReadUser(functionOf(source), 1), false))
for (const source of SEEING)
  test(`who calls may matter to ${source}`, () => assert.equal(mayReadUser(functionOf(source), 1), true))

test('who calls may matter to what hides its source, and to methods', () => {
  const reads = { show: (_data: unknown, context: { user: unknown }) => context.user }
  assert.equal(mayReadUser(reads.show.bind(reads), 1), true)
  const plugin = {
    async 'say it'(_data: unknown, context: { user: unknown }) {
      return context.user
    },
    async say(_data: unknown, context: { path: string }) {
      return context.path
    },
  }
  assert.equal(mayReadUser(plugin['say it'], 1), true)
  assert.equal(mayReadUser(plugin.say, 1), false)
  assert.equal(
    mayReadUser((context: { path: string }) => context.path, 0),
    false,
  )
  assert.equal(
    mayReadUser((context: { user: unknown }) => context.user, 0),
    true,
  )
})

function functionOf(source: string): unknown {
  return runInThisContext(`(${source})`)
}
