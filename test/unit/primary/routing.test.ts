import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Routing } from '../../../src/primary/http/routes.ts'
import { laneOf, routeOf } from '../../support/fake-lane.ts'

const TIMEOUT_MS = 30_000

function routingOf() {
  const routing = new Routing(TIMEOUT_MS)
  const refused: [plugin: string, error: string][] = []
  const register = (lane: Parameters<Routing['register']>[0]) =>
    routing.register(lane, (plugin, error) => void refused.push([plugin, error]))
  return { routing, refused, register }
}

test('every lane with the same code gets the same numbers', (t) => {
  const { routing, register, refused } = routingOf()
  const routes = [routeOf('shop.Sell', '/sell'), routeOf('shop.Buy', '/buy/:id')]
  const [one, two] = [laneOf(t, { manifest: { routes } }), laneOf(t, { index: 1, manifest: { routes } })]
  const numbers = register(one)
  assert.deepEqual(register(two), numbers)
  assert.deepEqual(refused, [])
  assert.equal(routing.table.list().length, 2)
  for (const number of numbers) assert.deepEqual([one.servesRoute[number], two.servesRoute[number]], [1, 1])
})

test('within one generation the second plugin that wants a route is refused, with all of its routes', (t) => {
  const { routing, register, refused } = routingOf()
  const sell = register(laneOf(t, { manifest: { routes: [routeOf('shop.Sell', '/goods/:id')] } }))
  const late = laneOf(t, {
    index: 1,
    manifest: { routes: [routeOf('shop.Buy', '/goods/:name'), routeOf('shop.Buy', '/buy')] },
  })
  assert.deepEqual(register(late), [-1, -1])
  assert.deepEqual(refused, [['shop.Buy', 'GET /goods/:name is registered already by shop.Sell']])
  assert.equal(routing.table.find('GET', '/goods/1')?.number, sell[0])
  assert.equal(routing.table.find('GET', '/buy'), null)
  assert.equal(late.servesRoute.includes(1), false)
})

test('newer code may give a route to another plugin, and older code does not get it back', (t) => {
  const { routing, register, refused } = routingOf()
  const old = laneOf(t, { manifest: { routes: [routeOf('shop.Sell', '/goods')] } })
  const fresh = laneOf(t, { generation: 1, manifest: { routes: [routeOf('shop.Buy', '/goods')] } })
  const [before] = register(old)
  const [after] = register(fresh)
  assert.notEqual(after, before)
  assert.deepEqual(refused, [])
  assert.equal(routing.table.find('GET', '/goods')?.plugin, 'shop.Buy')
  assert.deepEqual(
    [old.servesRoute[after!], fresh.servesRoute[after!]],
    [0, 1],
    'no request for the new owner goes to old code',
  )
  assert.equal(routing.nameOf(before!), 'GET /goods', 'what the old lane was at still has a name')
  register(laneOf(t, { index: 1, manifest: { routes: [routeOf('shop.Sell', '/goods')] } }))
  assert.deepEqual(refused, [['shop.Sell', 'GET /goods is registered already by shop.Buy']])
})

test('a fetch handler has all methods of its prefix and of what is below, and other routes their own paths', (t) => {
  const { register, routing, refused } = routingOf()
  const mounted = { ...routeOf('shop.Serve', '/api/*'), method: 'ALL' } as const
  const routes = [routeOf('shop.Other', '/api/own'), mounted]
  const [own, all] = register(laneOf(t, { manifest: { routes } }))
  for (const [method, path, number] of [
    ['GET', '/api', all],
    ['DELETE', '/api/a/b', all],
    ['HEAD', '/api/', all],
    ['GET', '/api/own', own],
    ['HEAD', '/api/own', own],
    ['POST', '/api/own', all],
    ['GET', '/apis', undefined],
  ] as const)
    assert.equal(routing.table.find(method, path)?.number, number, `${method} ${path}`)
  assert.deepEqual(refused, [])
  for (const path of ['/api', '/api/*']) {
    assert.deepEqual(register(laneOf(t, { index: 1, manifest: { routes: [routeOf('shop.Rival', path)] } })), [-1])
    assert.deepEqual(refused.pop(), ['shop.Rival', `GET ${path} is registered already by shop.Serve`])
  }
  const again = { ...mounted, plugin: 'shop.Rival' }
  assert.deepEqual(register(laneOf(t, { index: 2, manifest: { routes: [again] } })), [-1])
  assert.deepEqual(refused, [['shop.Rival', 'ALL /api/* is registered already by shop.Serve']])
})

test('newer code may make a fetch handler of several routes, and routes of it', (t) => {
  const { register, routing, refused } = routingOf()
  const [read, write] = [routeOf('shop.Sell', '/api/*'), { ...routeOf('shop.Sell', '/api/*'), method: 'POST' } as const]
  register(laneOf(t, { manifest: { routes: [read, write] } }))
  const mounted = { ...routeOf('shop.Serve', '/api/*'), method: 'ALL' } as const
  const [all] = register(laneOf(t, { generation: 1, manifest: { routes: [mounted] } }))
  assert.deepEqual([routing.table.find('POST', '/api/a')?.number, routing.table.list().length], [all, 1])
  const [, post] = register(laneOf(t, { generation: 2, manifest: { routes: [read, write] } }))
  assert.deepEqual([routing.table.find('POST', '/api/a')?.number, routing.table.find('PUT', '/api/a')], [post, null])
  assert.deepEqual(refused, [])
})

test('a route of the primary is never taken over', (t) => {
  const { routing, register, refused } = routingOf()
  routing.addLocal(routeOf('system.Status', '/system/status'))
  const lane = laneOf(t, { generation: 5, manifest: { routes: [routeOf('shop.Sell', '/system/status')] } })
  assert.deepEqual(register(lane), [-1])
  assert.equal(refused[0]![0], 'shop.Sell')
  assert.throws(() => routing.addLocal(routeOf('system.Other', '/system/status')), {
    code: 'HTTP_ROUTE_TAKEN',
    message: /by system\.Status/,
  })
  routing.keepHosted([])
  assert.equal(routing.table.list().length, 1, 'nor taken away with the lanes')
  routing.drop('system.Status')
  assert.deepEqual(routing.table.list(), [])
})

test('a route that stays keeps its number, and has what the newer code says of it', (t) => {
  const { routing, register } = routingOf()
  const versions = [routeOf('shop.Sell', '/sell'), routeOf('shop.Sell', '/sell', { timeoutMs: 5, tags: ['new'] })]
  const lanes = versions.map((route, generation) => laneOf(t, { generation, manifest: { routes: [route] } }))
  const numbers = lanes.map((lane) => register(lane)[0])
  assert.equal(numbers[0], numbers[1])
  const told = () => routing.table.list().map(({ timeoutMs, manifest }) => [timeoutMs, manifest.tags])
  assert.deepEqual(told(), [[5, ['new']]])
  register(laneOf(t, { manifest: { routes: [versions[0]!] } }))
  assert.deepEqual(told(), [[5, ['new']]], 'a lane of older code says nothing new')
})

for (const what of ['ignoresHeaders', 'ignoresAddress'] as const)
  test(`${what}: holds when no code that may serve the route says otherwise`, (t) => {
    const { routing, register } = routingOf()
    const serve = (generation: number, ignores: boolean): boolean => {
      const route = { ...routeOf('shop.Sell', '/sell'), [what]: ignores }
      register(laneOf(t, { generation, manifest: { routes: [route] } }))
      return routing.table.find('GET', '/sell')![what]
    }
    assert.equal(serve(0, true), true)
    assert.equal(serve(1, true), true)
    assert.equal(serve(2, false), false)
    assert.equal(serve(3, true), false, 'a lane of the older code may still serve it')
  })

test('an endpoint that becomes a stream is another route', (t) => {
  const { routing, register } = routingOf()
  const [endpoint] = register(laneOf(t, { manifest: { routes: [routeOf('shop.Sell', '/sell')] } }))
  const routes = [routeOf('shop.Sell', '/sell', { kind: 'stream', timeoutMs: 5 })]
  const [stream] = register(laneOf(t, { generation: 1, manifest: { routes } }))
  assert.notEqual(stream, endpoint)
  assert.deepEqual(
    routing.table.list().map(({ number, kind, timeoutMs }) => [number, kind, timeoutMs]),
    // Until it opens.
    [[stream, 'stream', 5]],
  )
})

test('routes that no lane serves any more are taken away', (t) => {
  const { routing, register } = routingOf()
  register(laneOf(t, { manifest: { routes: [routeOf('shop.Sell', '/old'), routeOf('shop.Sell', '/stays')] } }))
  const fresh = laneOf(t, { generation: 1, manifest: { routes: [routeOf('shop.Sell', '/stays')] } })
  register(fresh)
  assert.notEqual(routing.table.find('GET', '/old'), null, 'as long as an old lane may serve it')
  routing.keepHosted([fresh])
  assert.equal(routing.table.find('GET', '/old'), null)
  assert.notEqual(routing.table.find('GET', '/stays'), null)
})

test('the routes of a plugin that is set aside are closed, those that come later too, until it is tried again', (t) => {
  const { routing, register } = routingOf()
  const closed = () => routing.table.list().map(({ path, closedUntilMs }) => [path, closedUntilMs])
  register(laneOf(t, { manifest: { routes: [routeOf('shop.Sell', '/sell'), routeOf('shop.Buy', '/buy')] } }))
  routing.close('shop.Sell', 5000)
  register(laneOf(t, { generation: 1, manifest: { routes: [routeOf('shop.Sell', '/new')] } }))
  assert.deepEqual(closed(), [
    ['/sell', 5000],
    ['/buy', 0],
    ['/new', 5000],
  ])
  routing.close('shop.Sell', 0)
  assert.deepEqual(closed(), [
    ['/sell', 0],
    ['/buy', 0],
    ['/new', 0],
  ])
})

test('a folder of a primary plugin is served by every lane, whatever its code, until that plugin fails', (t) => {
  const { routing, register, refused } = routingOf()
  const routes = [routeOf('shop.Lend', '/files/*'), routeOf('shop.Lend', '/files')]
  const folder = { plugin: 'shop.Lend', prefix: '/files', directory: '/shelf' }
  routing.addMount(folder, routes)
  assert.deepEqual(routing.mounts, [{ ...folder, numbers: [0, 1] }])
  assert.throws(() => routing.addMount(folder, routes), { code: 'HTTP_ROUTE_TAKEN' })
  for (const generation of [0, 1]) {
    const lane = laneOf(t, { generation, manifest: { routes: [routeOf('shop.Rival', '/files/*')] } })
    assert.deepEqual(register(lane), [-1])
    assert.deepEqual(refused.at(-1)?.[0], 'shop.Rival')
    assert.deepEqual([...lane.servesRoute.subarray(0, 3)], [1, 1, 0])
    routing.keepHosted([lane])
  }
  assert.deepEqual(
    routing.table.list().map(({ servedBy, path }) => `${servedBy} ${path}`),
    ['lanes /files/*', 'lanes /files'],
  )
  routing.drop('shop.Lend')
  assert.deepEqual([routing.mounts, routing.table.list()], [[], []])
})
