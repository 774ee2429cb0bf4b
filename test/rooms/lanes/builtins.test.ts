import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { BlackBox } from '../../../src/contracts/registry.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { Random } from '../../support/random.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { boxesOf } from './deadly.ts'

/** `BUILTINS=all npm test lanes/builtins` replaces each of them in each way: a second of a core for each. */
const TRIED = process.env.BUILTINS === 'all' ? Number.POSITIVE_INFINITY : Number(process.env.BUILTINS ?? 12)
/** Of what a lane looks at by itself once in a second. */
const LEFT_MS = 300_000
const RELOADED = /^Reloaded in \d+ ms$/

interface Change {
  readonly owner: string
  readonly key: string
  readonly way: string
}

const HIDDEN: Record<string, object> = {
  iterator: Object.getPrototypeOf([][Symbol.iterator]()),
  typed: Object.getPrototypeOf(Uint8Array.prototype),
}

/** Every function that the language has on what answers are made of. */
function functionsOf(): Change[] {
  const names = [
    'Object',
    'Array',
    'String',
    'Promise',
    'Map',
    'Set',
    'WeakMap',
    'Number',
    'RegExp',
    'Date',
    'Function',
  ]
  const more = ['Error', 'Symbol', 'Buffer', 'Uint8Array', 'Int32Array', 'URL', 'AbortController', 'AbortSignal']
  const constructors = [...names, ...more].flatMap((name) => [name, `${name}.prototype`])
  const owners = [...constructors, 'JSON', 'Reflect', 'Math', 'Atomics', 'iterator', 'typed']
  const changes = owners.flatMap((owner) => {
    const of = HIDDEN[owner] ?? owner.split('.').reduce((at, name) => (at as never)[name], globalThis as object)
    return Reflect.ownKeys(of).flatMap((key) => {
      const { value, configurable } = Reflect.getOwnPropertyDescriptor(of, key)!
      const name = typeof key === 'symbol' ? `@@${key.description?.replace('Symbol.', '')}` : key
      // The symbols of Node itself have no name in the language.
      const isNamed = typeof key === 'string' || name.slice(2) in Symbol
      return typeof value === 'function' && configurable && isNamed ? [{ owner, key: name }] : []
    })
  })
  const globals = ['setTimeout', 'setImmediate', 'queueMicrotask', 'clearTimeout', 'structuredClone', 'Promise', 'Map']
  return [...changes, ...globals.map((key) => ({ owner: 'globalThis', key }))].flatMap((each) =>
    ['this', 'undefined', 'throws'].map((way) => ({ ...each, way })),
  )
}

/** What objects of the runtime and of libraries may leave out. */
const ADDED = [
  ...['status', 'body', 'headers', 'user', 'get', 'set', 'value', 'writable', 'enumerable', 'configurable', 'then'],
  ...[
    'success',
    'error',
    'code',
    'details',
    'message',
    'stack',
    'name',
    'id',
    'type',
    'data',
    'file',
    'head',
    'length',
  ],
  ...['key', 'path', 'method', 'query', 'params', 'hooks', 'owner', 'options', 'signal', 'toJSON', 'issues', 'isForm'],
  ...['encoding', 'duplex', 'cache', 'constructor', 'done', 'next', 'retries', 'trace', '0', 'kind', 'context', 'role'],
].flatMap((key): Change[] => ['add', 'hidden'].map((way) => ({ owner: 'Object.prototype', key, way })))

/** At its first place what it fails with, if anything does, whatever comes. */
type Wanted = readonly [status: number, body: unknown]

interface Asked {
  readonly path: string
  readonly init?: RequestInit
  readonly wanted: Wanted
}

const JSON_TYPE = { 'content-type': 'application/json' }
const post = (body: unknown): RequestInit => ({ method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body) })

function suite(number: number): Asked[] {
  const ok = (data: unknown): Wanted => [200, { success: true, data }]
  const checked = { text: 'é', many: [1, 2] }
  return [
    { path: '/calm/plain/7', wanted: ok({ id: '7', ran: true }) },
    { path: '/calm/awaited', wanted: ok({ list: [1, 2, 3], ran: true }) },
    { path: '/calm/checked', init: post(checked), wanted: ok({ ...checked, ran: true }) },
    { path: '/calm/asked?word=a%20b', wanted: ok({ word: 'a b' }) },
    { path: '/calm/fails', wanted: [500, null] },
    { path: '/calm/missing', wanted: [404, { success: false, error: 'None', code: 'NONE' }] },
    { path: '/calm/stream', wanted: [200, 'one two three'] },
    { path: '/calm/guarded', wanted: [403, { success: false, error: 'Locked' }] },
    { path: '/calm/guarded', init: { headers: { 'x-key': 'right' } }, wanted: ok('inside') },
    { path: '/calm/mounted/a', init: post(checked), wanted: [202, { read: checked }] },
    { path: '/calm/kept', wanted: ok({ a: [1] }) },
    { path: '/calm/numbers', init: post({ number }), wanted: ok(number) },
  ]
}

type Verdict = 'right' | 'failed' | { wrong: string }

/** A 5xx is a clear failure, and so is a connection that breaks off. */
async function verdictOf(heddle: Heddle, { path, init, wanted: [status, body] }: Asked): Promise<Verdict> {
  let text: string
  let response: Response
  try {
    response = await heddle.fetch(path, { ...init, signal: AbortSignal.timeout(30_000) })
    text = await response.text()
  } catch (error) {
    return (error as Error).name === 'TimeoutError' ? { wrong: `${path}: no answer` } : 'failed'
  }
  if (response.status >= 500) return status >= 500 ? 'right' : 'failed'
  const given = text.startsWith('{') ? JSON.parse(text) : text
  try {
    assert.deepEqual([response.status, given], [status, body])
    return 'right'
  } catch {
    return { wrong: `${path}: ${response.status} ${text.slice(0, 200)}` }
  }
}

const start = (t: Parameters<typeof startHeddle>[0]): Promise<Heddle> =>
  startHeddle(t, { domains: [fixtureDomains('builtins'), SYSTEM_ROUTES], lanes: 1, env: { LANE_STALL_MS: '600000' } })

const deaths = (heddle: Heddle) => heddle.logs.filter(({ msg }) => / died: /.test(msg))

async function allRight(heddle: Heddle): Promise<void> {
  const wanted = suite(0).map(({ wanted: [status] }) => status)
  let given: number[] = []
  await until(
    async () => {
      given = await Promise.all(suite(0).map(({ path, init }) => statusOf(heddle, path, init)))
      return isDeepStrictEqual(given, wanted)
    },
    'a lane',
    LEFT_MS,
  ).catch((error) => assert.fail(`${error.message}: ${given} ${JSON.stringify(heddle.logs.slice(-5))}`))
}

/** New code: nothing is known against any plugin. */
async function reload(heddle: Heddle): Promise<void> {
  const isDone = ({ msg }: { msg: string }): boolean => RELOADED.test(msg)
  const before = heddle.logs.filter(isDone).length
  heddle.process.kill('SIGHUP')
  await until(() => heddle.logs.filter(isDone).length > before, 'new lanes', LEFT_MS)
}

async function statusOf(heddle: Heddle, path: string, init: RequestInit | undefined): Promise<number> {
  const response = await heddle.fetch(path, init)
  await response.arrayBuffer()
  return response.status
}

describe('builtins that a plugin changes', () => {
  test('no answer is wrong while they are changed, the lane is replaced, and no event is lost', {
    timeout: 3_600_000,
  }, async (t) => {
    const heddle = await start(t)
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
    t.diagnostic(`SEED=${seed}`)
    const random = new Random(seed)
    const drawn = [...functionsOf(), ...ADDED].map((change) => ({ change, at: random.next() }))
    const fixed: Change[] = [
      { owner: 'Promise.prototype', key: 'then', way: 'this' },
      { owner: 'JSON', key: 'stringify', way: 'undefined' },
      { owner: 'storage', key: 'run', way: 'undefined' },
      { owner: 'MessagePort.prototype', key: 'postMessage', way: 'undefined' },
      { owner: 'Object.prototype', key: 'status', way: 'add' },
      { owner: 'Object.prototype', key: 'get', way: 'add' },
      { owner: 'Object.prototype', key: 'toJSON', way: 'hidden' },
      { owner: 'Object.prototype', key: 'body', way: 'hidden' },
      { owner: 'Array.prototype', key: 'toJSON', way: 'hidden' },
    ]
    const changes = [...fixed, ...drawn.sort((a, b) => a.at - b.at).map(({ change }) => change)].slice(
      0,
      fixed.length + TRIED,
    )
    const wrong: string[] = []
    const unnoticed: string[] = []
    const numbers: number[] = []
    await allRight(heddle)
    for (const [n, change] of changes.entries()) {
      const before = deaths(heddle).length
      const what = `${change.owner}.${change.key} ${change.way}`
      await heddle.fetch('/break/later', post(change)).catch(() => {})
      for (let round = 0; deaths(heddle).length === before && round < 200; round++) {
        const number = 1000 * (n + 1) + round
        const found = await Promise.all(suite(number).map((asked) => verdictOf(heddle, asked)))
        for (const each of found) if (typeof each === 'object') wrong.push(`${what}: ${each.wrong}`)
        if (found.at(-1) === 'right') numbers.push(number)
      }
      if (deaths(heddle).length === before) unnoticed.push(what)
      // Else the plugin would have a lane of its own from the first time on.
      await reload(heddle)
      await allRight(heddle)
      if (process.env.BUILTINS !== undefined)
        console.log(n, what, deaths(heddle).at(-1)?.msg.slice(0, 120), wrong.length)
    }
    assert.deepEqual(wrong, [])
    const named = deaths(heddle).map(({ msg }) => msg)
    assert.deepEqual(
      named.filter((text) => /calm/.test(text)),
      [],
      'nobody else is named',
    )
    await until(async () => {
      const handled: { number: number; doubled: number }[] = (await heddle.json('/calm/handled')).body.data
      const doubled = new Map(handled.map((each) => [each.number, each.doubled]))
      return numbers.every((number) => doubled.get(number) === 2 * number)
    }, 'each event that was accepted')
    assert.deepEqual(unnoticed, [])
  })

  test('the log names what was replaced, its line, and the plugin that alone has run', async (t) => {
    const heddle = await start(t)
    const breakBy = (path: string, body: unknown): Promise<unknown> => heddle.fetch(`/break/${path}`, post(body))
    let seen = 0
    const next = async (): Promise<BlackBox> => {
      const broken = async () => (await boxesOf(heddle)).filter((box) => box.reason === 'broken')
      await until(async () => (await broken()).length > seen, 'its end', LEFT_MS)
      seen++
      await reload(heddle)
      await allRight(heddle)
      return (await broken())[0]!
    }
    await allRight(heddle)

    // What adds what is missing is left alone, as is what was patched before the boot was over.
    await breakBy('own', { what: 'polyfill' })
    await allRight(heddle)
    assert.equal(deaths(heddle).length, 0)

    await breakBy('merge', { text: '{"__proto__":{"status":200}}' })
    const merged = await next()
    assert.equal(merged.message, 'Object.prototype.status was added: every object has it')
    assert.deepEqual([merged.guilty?.plugin, merged.guilty?.evidence], ['breaks.Break', 'origin'])

    await breakBy('own', { what: 'frozen' })
    assert.equal((await next()).message, 'Error.prototype was frozen')
    await breakBy('own', { what: 'turned' })
    assert.equal((await next()).message, 'Promise.prototype inherits from another object')
    await breakBy('own', { what: 'getter' })
    assert.equal((await next()).message, 'Map.prototype.size was replaced')

    await breakBy('own', { what: 'map' })
    const { guilty, message: said } = await next()
    assert.equal(said, 'Array.prototype.map was replaced')
    assert.deepEqual([guilty?.plugin, guilty?.evidence], ['breaks.Break', 'stack'])
    assert.match(guilty!.line!, /break\.ts:\d+:\d+$/)
    assert.equal(await heddle.stop(), 0)
  })
})
