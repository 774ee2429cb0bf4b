import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { ask, headerOf, type RawResponse } from '../../support/raw-client.ts'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const TOKEN = 'operator-0123456789abcdef'
const READ_TOKEN = 'reader-0123456789abcdef'
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const jsonOf = ({ body }: RawResponse) => JSON.parse(body.toString())

/** One route of every kind under `/system`, however it is spelled. */
const LOOKS = [
  '/system/status',
  '/system/lanes',
  '/system/dead-letters',
  '/system/openapi.json',
  '/system/metrics/prometheus',
  '/system/metrics',
  '/system/dashboard',
  '/system/dashboard/main.js',
  '/system/docs',
  '/%73ystem/status',
  '/system/%73tatus',
]
/** `done`: the status for whoever may change something. */
const CHANGES: readonly (readonly [method: string, path: string, done: number])[] = [
  ['POST', '/system/dead-letters/none/replay', 404],
  // Of the letters that there are, which are none.
  ['POST', '/system/dead-letters/replay', 200],
  // One that there is not, instead of a list.
  ['POST', '/system/dead-letters/replay?ids=dl_0', 404],
  // Without a payload.
  ['PUT', '/system/dead-letters/none', 422],
  ['DELETE', '/system/dead-letters/none', 404],
  // Without a job.
  ['POST', '/system/jobs/run', 422],
  // Without an event.
  ['POST', '/system/events/publish', 422],
]

describe('SYSTEM_TOKEN and SYSTEM_READ_TOKEN', { concurrency: true }, () => {
  const service = shareService((owner) =>
    startHeddle(owner, { domains: [SHIPPED], lanes: 1, env: { SYSTEM_TOKEN: TOKEN, SYSTEM_READ_TOKEN: READ_TOKEN } }),
  )
  const status = async (method: string, path: string, headers: Record<string, string> = {}) =>
    (await ask(service().port, method, path, headers)).status

  it('are wanted by everything under /system', async () => {
    for (const path of LOOKS) {
      assert.equal(await status('GET', path), 401, path)
      assert.equal(await status('HEAD', path), 401, path)
      assert.equal(await status('GET', path, bearer(TOKEN)), 200, path)
      assert.equal(await status('GET', path, bearer(READ_TOKEN)), 200, path)
    }
    for (const path of ['/system/logs/stream', '/system/traces/stream', '/system/dashboard/stream'])
      assert.equal(await status('GET', path), 401, path)
    // A path under /system that has other methods tells nothing of them.
    assert.equal(await status('PUT', '/system/status'), 401)
    for (const [method, path] of CHANGES) assert.equal(await status(method, path), 401, path)
    assert.equal(await status('GET', '/hello/ada'), 200)
  })

  it('are no part of an address, and refused when they are wrong, which the log tells once a minute', async () => {
    assert.equal(await status('GET', `/system/status?token=${TOKEN}`), 401)
    assert.equal(await status('GET', '/system/status', bearer(`${TOKEN}x`)), 401)
    assert.equal(await status('GET', '/system/status', { cookie: 'heddle_system=wrong' }), 401)
    const told = () => service().logs.filter(({ msg }) => msg === 'Wrong tokens are sent to /system')
    await until(() => told().length > 0, 'a line in the log')
    assert.deepEqual(
      told().map(({ level, ip, count }) => [level, ip, count]),
      [[40, '127.0.0.1', 1]],
    )
  })

  it('let the reader look and change nothing', async () => {
    for (const [method, path, done] of CHANGES) {
      assert.equal(await status(method, path, bearer(READ_TOKEN)), 403, path)
      assert.equal(await status(method, path, bearer(TOKEN)), done, path)
    }
  })

  it('leave the health public, which tells a stranger ready or not and no more', async () => {
    const { port } = service()
    for (const [path, short] of [
      ['/system/health/ready', { ready: true }],
      ['/system/health/live', { live: true }],
    ] as const) {
      assert.deepEqual(jsonOf(await ask(port, 'GET', path)), { success: true, data: short })
      assert.deepEqual(jsonOf(await ask(port, 'GET', path, bearer('wrong-0123456789'))).data, short)
      const full = jsonOf(await ask(port, 'GET', path, bearer(READ_TOKEN))).data
      assert.ok(Object.keys(full).length > 1, path)
    }
  })

  it('are kept by the login in a cookie that scripts and other sites do not get', async () => {
    const { port } = service()
    const refused = await ask(port, 'POST', '/system/login', bearer('wrong-0123456789'))
    assert.deepEqual([refused.status, headerOf(refused, 'set-cookie')], [401, undefined])
    for (const [token, deleted] of [
      [TOKEN, 404],
      [READ_TOKEN, 403],
    ] as const) {
      const response = await ask(port, 'POST', '/system/login', bearer(token))
      const [cookie, ...attributes] = headerOf(response, 'set-cookie')!.split('; ')
      assert.deepEqual(attributes, ['Path=/system', 'SameSite=Strict', 'Max-Age=43200', 'HttpOnly'])
      assert.equal(await status('GET', '/system/status', { cookie: `a=b; ${cookie}` }), 200)
      assert.equal(await status('DELETE', '/system/dead-letters/none', { cookie: cookie! }), deleted)
      const foreign = { cookie: cookie!, origin: 'https://evil.example' }
      assert.equal(await status('DELETE', '/system/dead-letters/none', foreign), 403)
    }
  })

  it('are wanted from assistants as bearer: the cookie of the login opens the pages alone', async () => {
    const ask = async (headers: Record<string, string>) => status('POST', '/system/mcp', headers)
    assert.equal(await ask({ cookie: `heddle_system=${TOKEN}` }), 401)
    assert.equal(await ask({ cookie: `heddle_system=${TOKEN}`, ...bearer('wrong-0123456789abcdef') }), 401)
    assert.equal(await ask(bearer(READ_TOKEN)), 403)
    // Nothing is asked.
    assert.ok([400, 406, 415].includes(await ask(bearer(TOKEN))))
  })

  it('lead a browser that wants a page to the login, with 401', async () => {
    const response = await ask(service().port, 'GET', '/system/dashboard', { accept: 'text/html,*/*' })
    assert.equal(response.status, 401)
    assert.match(response.body.toString(), /url=\/system\/login\?next=%2Fsystem%2Fdashboard"/)
    assert.equal(await status('GET', '/system/login'), 200)
    assert.equal(await status('GET', '/system/login/main.js'), 200)
  })
})

describe('/system without a token and a port of its own', () => {
  it('is closed in production where a setting tells of a proxy', async (t) => {
    const env = { NODE_ENV: 'production', HTTP_TRUSTED_PROXIES: '127.0.0.1' }
    const { port, logs } = await startHeddle(t, { domains: [SHIPPED], lanes: 1, env })
    assert.equal(logs.filter(({ msg }) => /\/system is closed, but for its health/.test(msg)).length, 1)
    for (const path of [...LOOKS, '/system/login', '/system/logs/stream'])
      for (const method of ['GET', 'POST', 'OPTIONS']) assert.equal((await ask(port, method, path)).status, 404, path)
    for (const [method, path] of CHANGES) assert.equal((await ask(port, method, path)).status, 404, path)
    const { error } = jsonOf(await ask(port, 'GET', '/system/status'))
    assert.match(error, /closed in production.*: set SYSTEM_TOKEN or SYSTEM_PORT$/, 'it says how to open it')
    assert.equal(jsonOf(await ask(port, 'GET', '/none')).error, 'Not found')
    assert.deepEqual(jsonOf(await ask(port, 'GET', '/system/health/ready')).data, { ready: true })
    assert.equal((await ask(port, 'GET', '/hello/ada')).status, 200)
  })
})

describe('SYSTEM_PORT', { concurrency: true }, () => {
  const told = ({ logs }: Heddle) => logs.find(({ msg }) => msg.startsWith('/system is on http://127.0.0.1:'))
  const service = shareService(async (owner) => {
    const heddle = await startHeddle(owner, { domains: [SHIPPED], lanes: 1, env: { SYSTEM_PORT: '0' } })
    await until(() => told(heddle), 'the port of /system')
    return heddle
  })
  const systemPort = (): number => Number(told(service())!.msg.split(':').at(-1))

  it('serves /system there, and answers 404 on the public port, whatever the method', async () => {
    const { port } = service()
    for (const path of [...LOOKS, '/system/login', '/system/logs/stream']) {
      for (const method of ['GET', 'POST', 'OPTIONS']) assert.equal((await ask(port, method, path)).status, 404, path)
      if (!path.endsWith('stream')) assert.equal((await ask(systemPort(), 'GET', path, LOOPBACK)).status, 200, path)
    }
    assert.equal((await ask(systemPort(), 'GET', '/hello/ada', LOOPBACK)).status, 404)
    assert.equal((await ask(port, 'GET', '/hello/ada')).status, 200)
    assert.equal((await ask(systemPort(), 'GET', '/system/status', { host: 'rebound.example' })).status, 421)
  })

  it('serves the application there to its own pages alone: with a key that only /system tells', async () => {
    const { port } = service()
    const { url, key } = jsonOf(await ask(systemPort(), 'GET', '/system/status', LOOPBACK)).listener.application
    assert.equal(url, `http://127.0.0.1:${port}`)
    const status = async (path: string, headers: Record<string, string>) =>
      (await ask(systemPort(), 'GET', path, { ...LOOPBACK, ...headers })).status
    assert.equal(await status('/hello/ada', { 'x-heddle-page': key }), 200)
    assert.equal(await status('/hello/ada', { 'x-heddle-page': `${key}x` }), 404)
    assert.equal(await status('/hello/ada', { 'x-heddle-page': '' }), 404)
    // What a link sends along: the answer would be a page of this address.
    assert.equal(await status('/hello/ada', { cookie: `heddle_page=${key}` }), 404)
    assert.equal(await status('/system/status', { 'x-heddle-page': key }), 404)
    const { servers, paths } = jsonOf(await ask(systemPort(), 'GET', '/system/openapi.json', LOOPBACK))
    assert.deepEqual(servers, [{ url }])
    assert.equal(paths['/hello/{name}'].get.servers, undefined)
    assert.deepEqual(paths['/system/status'].get.servers, [{ url: '/' }])
  })

  it('leaves the health on both, short on the public one', async () => {
    const path = '/system/health/ready'
    assert.deepEqual(jsonOf(await ask(service().port, 'GET', path)).data, { ready: true })
    assert.deepEqual(jsonOf(await ask(systemPort(), 'GET', path, LOOPBACK)).data.reasons, [])
  })
})

const LOOPBACK = { host: 'localhost' }

describe('what an operator does', () => {
  it('is an event of the causal tree, and a line of the log: who, when, what', async (t) => {
    const domains = [new URL('../../fixtures/operator', import.meta.url).pathname, SHIPPED]
    const heddle = await startHeddle(t, { domains, lanes: 1, env: { SYSTEM_TOKEN: TOKEN } })
    const headers = bearer(TOKEN)
    await heddle.fetch('/fail', { method: 'POST' })
    const letters = async () => (await heddle.json('/system/dead-letters', { headers })).body as { id: string }[]
    const [{ id: failed }] = await until(async () => {
      const found = await letters()
      return found.length === 1 ? (found as [{ id: string }]) : null
    }, 'a dead letter')
    const replayed = await heddle.fetch(`/system/dead-letters/${failed}/replay`, { method: 'POST', headers })
    assert.equal(replayed.status, 200)
    // It fails again.
    const [{ id }] = await until(async () => {
      const found = await letters()
      return found.length === 1 && found[0]!.id !== failed ? (found as [{ id: string }]) : null
    }, 'the next dead letter')
    const response = await heddle.fetch(`/system/dead-letters/${id}`, { method: 'DELETE', headers })
    assert.equal(response.status, 200)
    heddle.process.kill('SIGHUP')
    await until(() => heddle.logs.some(({ msg }) => msg.startsWith('Reloaded')), 'the reload')

    const told = heddle.logs.filter(({ msg }) => msg.startsWith('An operator acted'))
    assert.deepEqual(
      told.map(({ action, target, by, address }) => [action, target, by, address]),
      [
        ['dead_letter.replay', failed, 'token', '127.0.0.1'],
        ['dead_letter.delete', id, 'token', '127.0.0.1'],
        ['reload', null, 'signal', null],
      ],
    )
    for (const { at } of told) assert.match(String(at), /^\d{4}-.*Z$/)
    const roots = (await heddle.json('/system/traces/tree', { headers })).body as {
      event: string
      request_id: string
    }[]
    const acts = roots.filter(({ event }) => event === 'runtime.operator.acted')
    assert.deepEqual(
      acts.map(({ request_id }) => request_id),
      [replayed.headers.get('x-request-id'), response.headers.get('x-request-id'), null],
    )
  })
})
