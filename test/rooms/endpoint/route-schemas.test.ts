import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const ZOD = JSON.stringify(fileURLToPath(import.meta.resolve('zod')))
const PLUGIN = `
import { z } from ${ZOD}

const query = z.object({
  limit: z.coerce.number().int().min(1).default(20),
  tag: z.array(z.string().min(2)).default([]),
  ids: z.array(z.coerce.number()).optional(),
  sort: z.enum(['name', 'date']).optional(),
})
const params = z.object({ id: z.coerce.number().int() })
const body = z.object({
  name: z.string().min(1),
  tags: z.array(z.string()).default([]),
  address: z.object({ lines: z.array(z.object({ text: z.string() })) }).optional(),
})
const form = z.object({ name: z.string().min(1), age: z.coerce.number(), tags: z.array(z.string()).default([]) })
const free = async (name) => { await new Promise((resolve) => setImmediate(resolve)); return name !== 'taken' }
const slow = z.object({ name: z.string().refine(free, 'is taken') })
const own = { '~standard': { version: 1, vendor: 'own', validate: (value) => value.x === '1'
  ? { value: { x: 1 } }
  : { issues: [{ message: 'wants 1', path: [{ key: 'x' }] }, ...('x' in value ? [] : [{ message: 'has no x' }])] } } }
const response = z.object({
  success: z.literal(true),
  data: z.object({ id: z.number(), at: z.string(), lines: z.array(z.object({ price: z.number() })).optional() }),
})
const slowResponse = z.object({ name: z.string().refine(free, 'is taken') })

/** Each choice of schemas, by the first letters of their places. */
const checked = {
  b: { body: z.object({ name: z.string() }) },
  q: { query: z.object({ page: z.coerce.number().default(1) }) },
  p: { params: z.object({ id: z.coerce.number() }) },
}

export default class Desk {
  constructor({ http }) {
    for (const choice of ['', 'b', 'q', 'p', 'bq', 'bp', 'qp', 'bqp']) {
      const options = Object.assign({}, ...[...choice].map((letter) => checked[letter]))
      const tell = (data, { query, body, files }) => ({ data, query, body, files: files.length, own: data._files?.length })
      http.addEndpoint('/chosen/_' + choice + '/:id', 'PATCH', tell, options)
      if (choice.includes('b')) continue
      http.addWebSocket('/sockets/_' + choice + '/:id', { open: (socket, data, { query }) => socket.send({ data, query }) }, options)
    }
    http.before((data, { route, query }) => { if (route === '/guarded' && query.role === 'admin') return { guarded: query } })
    http.addEndpoint('/guarded', 'POST', (data) => ({ data }), { body: checked.b.body })
    const echo = ({ _files, ...data }, context) => ({ data, files: _files?.length, body: context.body })
    http.addEndpoint('/items', 'GET', echo, { query })
    http.addEndpoint('/items/:id', 'POST', echo, { query, params, body })
    http.addEndpoint('/forms', 'POST', echo, { body: form })
    http.addEndpoint('/slow/:name', 'POST', echo, { query: slow, params: slow, body: slow })
    http.addEndpoint('/own/:x', 'GET', echo, { params: own, query: own })
    http.addEndpoint('/nothing', 'POST', echo, { body: z.object({ a: z.string().optional() }) })
    http.addEndpoint('/list', 'POST', echo, { body: z.array(z.number()) })
    http.addEndpoint('/broken', 'GET', echo, { query: z.object({}).refine(() => { throw new Error('no such table') }) })

    http.addStream('/stream/:id', (data, stream, { query }) => { stream.send({ data, query }); stream.close() })
    http.addEndpoint('/answers/:kind', 'GET', ({ kind }, context) => {
      const data = { id: 1, at: new Date(0) }
      if (kind === 'wrong') return { success: true, data: { ...data, lines: [{ price: 1 }, { price: 'two' }] } }
      if (kind === 'later') return Promise.resolve({ success: true, data: { at: 'now' } })
      if (kind === 'failed') return { success: false, error: 'no' }
      if (kind === 'chosen') { context.setStatus(404); return { error: 'none' } }
      if (kind === 'moved') return context.redirect('/elsewhere')
      if (kind === 'bytes') return context.sendBinary(Buffer.from('abc'), 'text/plain')
      if (kind === 'none') return context.setStatus(204)
      return { success: true, data: { ...data, extra: 'stays' } }
    }, { response })
    http.addEndpoint('/names/:name', 'GET', ({ name }) => ({ name }), { response: slowResponse })
  }
}
`

const start = async (t: TestContext, env: Record<string, string>) =>
  startHeddle(t, { domains: [await folderOf(t, { 'desk/plugins/desk.ts': PLUGIN })], lanes: 1, env })

test('query, body and path parameters are checked and converted by their schemas', { timeout: 60_000 }, async (t) => {
  const heddle = await start(t, {})
  const { json } = heddle
  const post = (path: string, body: string | FormData, type = 'application/json') =>
    json(path, { method: 'POST', body, ...(typeof body === 'string' ? { headers: { 'content-type': type } } : {}) })
  const form = (path: string, body: string) => post(path, body, 'application/x-www-form-urlencoded')
  const faults = ({ status, body }: { status: number; body: { details: { path: string; message: string }[] } }) => {
    assert.equal(status, 422)
    return Object.fromEntries(body.details.map(({ path, message }) => [path, message.replace('Invalid input: ', '')]))
  }
  const dataOf = ({ status, body }: { status: number; body: { data: unknown } }) => {
    assert.equal(status, 200, JSON.stringify(body))
    return body.data
  }

  await t.test('a query is converted, and one value is a list where the schema wants one', async () => {
    assert.deepEqual(dataOf(await json('/items?limit=5&tag=aa&tag=bb&ids=1&ids=2')), {
      limit: 5,
      tag: ['aa', 'bb'],
      ids: [1, 2],
    })
    assert.deepEqual(dataOf(await json('/items?tag=aa&ids=7&sort=name')), {
      limit: 20,
      tag: ['aa'],
      ids: [7],
      sort: 'name',
    })
    assert.deepEqual(faults(await json('/items?limit=x&tag=a&ids=y&sort=up&sort=down')), {
      limit: 'expected number, received NaN',
      'tag.0': 'Too small: expected string to have >=2 characters',
      'ids.0': 'expected number, received NaN',
      sort: 'Invalid option: expected one of "name"|"date"',
    })
  })

  await t.test('all that does not fit is answered at once, with nested paths', async () => {
    const body = JSON.stringify({ name: '', tags: 'one', address: { lines: [{ text: 'a' }, { text: 5 }] } })
    assert.deepEqual(faults(await post('/items/seven?limit=0', body)), {
      limit: 'Too small: expected number to be >=1',
      name: 'Too small: expected string to have >=1 characters',
      tags: 'expected array, received string',
      'address.lines.1.text': 'expected string, received number',
      id: 'expected number, received NaN',
    })
    assert.deepEqual(dataOf(await post('/items/7', '{"name":"loom"}')), {
      limit: 20,
      tag: [],
      name: 'loom',
      tags: [],
      id: 7,
    })
  })

  await t.test('forms are converted like queries, files go past the schema', async () => {
    assert.deepEqual(dataOf(await form('/forms', 'name=Ada&age=36&tags=x')), { name: 'Ada', age: 36, tags: ['x'] })
    assert.deepEqual(faults(await form('/forms', 'name=&age=old')), {
      name: 'Too small: expected string to have >=1 characters',
      age: 'expected number, received NaN',
    })
    const parts = new FormData()
    parts.set('name', 'Ada')
    parts.set('age', '36')
    parts.set('tags', 'x')
    parts.set('picture', new Blob(['pixels']), 'a.png')
    const uploaded = await post('/forms', parts)
    assert.deepEqual([dataOf(uploaded), uploaded.body.files], [{ name: 'Ada', age: 36, tags: ['x'] }, 1])
    parts.delete('name')
    assert.deepEqual(faults(await post('/forms', parts)), { name: 'expected string, received undefined' })
  })

  await t.test('async schemas are waited for, in all three places', async () => {
    assert.deepEqual(dataOf(await post('/slow/c?name=a', '{"name":"b"}')), { name: 'c' })
    const { body } = await post('/slow/taken?name=taken', '{"name":"taken"}')
    assert.deepEqual(body.details, Array(3).fill({ path: 'name', message: 'is taken' }))
  })

  await t.test('any Standard Schema will do', async () => {
    assert.deepEqual(dataOf(await json('/own/1?x=1')), { x: 1 })
    assert.deepEqual((await json('/own/1')).body.details, [
      { path: 'x', message: 'wants 1' },
      { path: '', message: 'has no x' },
    ])
  })

  await t.test('no body is an empty one, null is null, and what is no object is context.body', async () => {
    assert.deepEqual(dataOf(await json('/nothing', { method: 'POST' })), {})
    assert.deepEqual(faults(await post('/nothing', 'null')), { '': 'expected object, received null' })
    assert.deepEqual((await post('/list', '[1,2]')).body.body, [1, 2])
    assert.deepEqual(faults(await post('/list', '[1,"2"]')), { '1': 'expected number, received string' })
  })

  await t.test('an answer lists a hundred faults at most', async () => {
    const { body } = await post('/list', JSON.stringify(Array(5000).fill('x')))
    assert.equal(body.details.length, 101)
    assert.deepEqual(body.details.at(-1), { path: '', message: 'and 4900 more' })
  })

  await t.test('a schema that throws is a fault of the service', async () => {
    assert.deepEqual((await json('/broken')).body, { success: false, error: 'Internal server error' })
    await until(() => logged(heddle).includes('desk.Desk: /broken failed: no such table'), 'the log')
  })

  await t.test('in development an answer that does not fit is a 500, with path and fault in the log', async () => {
    const fault = { success: false, error: 'Internal server error' }
    for (const path of ['/answers/wrong', '/answers/later', '/names/taken']) {
      const { status, body } = await json(path)
      assert.deepEqual([status, body], [500, fault], path)
    }
    const said = 'what GET answered with 200 does not fit its response schema'
    const expected = [
      `desk.Desk: /answers/:kind failed: ${said}: data.lines.1.price: Invalid input: expected number, received string`,
      `desk.Desk: /answers/:kind failed: ${said}: data.id: Invalid input: expected number, received undefined`,
      `desk.Desk: /names/:name failed: ${said}: name: is taken`,
    ]
    await until(() => expected.every((line) => logged(heddle).includes(line)), 'the log')
  })

  await t.test('what fits goes out as it is, and what is no answer in JSON or no success goes unchecked', async () => {
    const data = { id: 1, at: '1970-01-01T00:00:00.000Z', extra: 'stays' }
    assert.deepEqual((await json('/answers/right')).body, { success: true, data })
    assert.deepEqual((await json('/names/free')).body, { name: 'free' })
    const status = async (kind: string) => (await heddle.fetch(`/answers/${kind}`, { redirect: 'manual' })).status
    assert.deepEqual(
      await Promise.all(['failed', 'chosen', 'moved', 'bytes', 'none'].map(status)),
      [400, 404, 302, 200, 204],
    )
  })
})

test('data: only validated values beside a schema, whatever the body is', { timeout: 60_000 }, async (t) => {
  const { json, fetch, port } = await start(t, {})
  const raw = { name: 'Ada', role: 'admin', id: '9' }
  const parts = new FormData()
  for (const [name, value] of Object.entries(raw)) parts.set(name, value)
  parts.set('picture', new Blob(['pixels']), 'a.png')
  const bodies: [string, RequestInit['body'], Record<string, string>][] = [
    ['JSON', JSON.stringify(raw), { 'content-type': 'application/json' }],
    ['a form', new URLSearchParams(raw).toString(), { 'content-type': 'application/x-www-form-urlencoded' }],
    ['multipart', parts, {}],
  ]
  const asked = '?role=root&page=3&id=8&name=Eve'
  const query = { role: 'root', page: '3', id: '8', name: 'Eve' }

  for (const choice of ['b', 'q', 'p', 'bq', 'bp', 'qp', 'bqp']) {
    for (const [what, body, headers] of bodies) {
      await t.test(`schemas of ${choice}, ${what}`, async () => {
        const files = what === 'multipart' ? 1 : 0
        const answer = await json(`/chosen/_${choice}/7${asked}`, { method: 'PATCH', body, headers })
        assert.deepEqual(answer.body, {
          data: {
            ...(choice.includes('q') ? { page: 3 } : {}),
            ...(choice.includes('b') ? { name: 'Ada' } : {}),
            id: choice.includes('p') ? 7 : '7',
          },
          query,
          ...(choice.includes('b') ? {} : { body: raw }),
          files,
          ...(files === 0 ? {} : { own: 1 }),
        })
      })
    }
  }

  await t.test('a route without a schema merges all of them', async () => {
    for (const [what, body, headers] of bodies) {
      const { body: answer } = await json(`/chosen/_/7${asked}`, { method: 'PATCH', body, headers })
      const { _files, ...data } = answer.data
      assert.deepEqual(data, { role: 'admin', page: '3', id: '7', name: 'Ada' }, what)
      assert.equal(_files?.length, what === 'multipart' ? 1 : undefined)
      assert.deepEqual(answer.query, query)
    }
  })

  await t.test('sockets and streams do so, too', async () => {
    for (const choice of ['', 'q', 'p', 'qp']) {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/sockets/_${choice}/7${asked}`)
      const message = await new Promise<string>((resolve, reject) => {
        socket.onmessage = ({ data }) => resolve(String(data))
        socket.onclose = () => reject(new Error(`closed: ${choice}`))
      })
      socket.close()
      const id = choice.includes('p') ? 7 : '7'
      const data = choice === '' ? { ...query, id } : { ...(choice.includes('q') ? { page: 3 } : {}), id }
      assert.deepEqual(JSON.parse(message), { data, query })
    }
    const stream = await (await fetch(`/stream/7${asked}`)).text()
    assert.deepEqual(JSON.parse(/data: (.*)/.exec(stream)![1]!), { data: { ...query, id: '7' }, query })
  })

  await t.test('a guard reads context.query, and a malformed query is refused wherever it is read', async () => {
    const post = (path: string) => json(path, { method: 'POST', body: '{"name":"Ada"}', headers: bodies[0]![2] })
    assert.deepEqual((await post('/guarded?role=admin')).body, { guarded: { role: 'admin' } })
    assert.deepEqual((await post('/guarded?role=user')).body, { data: { name: 'Ada' } })
    for (const bad of ['a=%ff', 'a=%zz', '__proto__=1']) {
      assert.equal((await post(`/guarded?${bad}`)).status, 400, bad)
      assert.equal((await json(`/chosen/_b/7?${bad}`, { method: 'PATCH' })).status, 400, bad)
    }
  })
})

test('in production answers are not checked', { timeout: 60_000 }, async (t) => {
  const heddle = await start(t, { NODE_ENV: 'production' })
  const { status, body } = await heddle.json('/answers/wrong')
  assert.deepEqual([status, body.data.lines], [200, [{ price: 1 }, { price: 'two' }]])
  assert.equal((await heddle.json('/names/taken')).status, 200)
})

function logged({ logs }: Heddle): string[] {
  return logs.map(({ identity, msg }) => `${identity}: ${msg}`)
}
