import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { getRequest, postRequest } from '../../../bench/load/client.ts'
import { LoadGenerator } from '../../../bench/load/generator.ts'
import { runLoad } from '../../../bench/load/runs.ts'
import { serve } from './serve.ts'

const BODY = '{"success":true}'

test('every good answer of the window is counted once, and no other', async (t) => {
  let answered = 0
  const target = await serve(t, (_request, response) => {
    answered++
    response.setHeader('content-length', BODY.length)
    response.end(BODY)
  })
  const result = await runLoad({ ...target, requests: [getRequest('/')], connections: 4, warmupMs: 50, measureMs: 200 })
  assert.ok(result.ok > 50, `${result.ok} answers`)
  assert.ok(result.okWithWarmup > result.ok)
  // The requests in flight at the end, one per connection, were answered but no longer counted.
  assert.ok(answered - result.okWithWarmup <= 4, `${answered} answered, ${result.okWithWarmup} counted`)
  assert.ok(answered >= result.okWithWarmup)
  assert.deepEqual([result.non2xx, result.errors], [0, 0])
  assert.ok(result.elapsedMs >= 199)
  assert.ok(Math.abs(result.okPerSec - (result.ok / result.elapsedMs) * 1000) < 1)
  const { p50, p99, max } = result.latencyMs
  assert.ok(p50 > 0 && p50 <= p99 && p99 <= max + 0.01, JSON.stringify(result.latencyMs))
})

test('a connection that breaks off in the middle of an answer is an error, and is opened anew', async (t) => {
  let turn = 0
  const target = await serve(t, (_request, response) => {
    response.writeHead(200, { 'content-length': BODY.length })
    if (turn++ % 10 !== 9) return response.end(BODY)
    response.write(BODY.slice(0, 5), () => response.destroy())
  })
  const result = await runLoad({ ...target, requests: [getRequest('/')], connections: 1, warmupMs: 0, measureMs: 300 })
  assert.ok(result.errors >= 2, `${result.errors} errors`)
  assert.ok(Math.abs(result.ok - result.errors * 9) <= 9, `${result.ok} good, ${result.errors} errors`)
})

test('a server that is not there yields errors and no answer', async (t) => {
  const { host, port } = await serve(t, () => {})
  const gone = createServer().listen(0, host)
  await once(gone, 'listening')
  const freePort = (gone.address() as AddressInfo).port
  gone.close()
  await once(gone, 'close')
  assert.notEqual(freePort, port)
  const plan = { host, port: freePort, requests: [getRequest('/')], connections: 2, warmupMs: 0, measureMs: 100 }
  const result = await runLoad(plan)
  assert.equal(result.ok, 0)
  assert.ok(result.errors > 0)
})

test('each connection sends the requests in turn, bodies and headers as written', async (t) => {
  const seen = new Set<string>()
  const target = await serve(t, (request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text) => {
      body += text
    })
    request.on('end', () => {
      seen.add(`${request.method} ${request.url} ${body} ${Object.keys(request.headers).length}`)
      response.setHeader('content-length', 0)
      response.end()
    })
  })
  const requests = [getRequest('/a'), postRequest('/b', { grüße: 1 })]
  await runLoad({ ...target, requests, connections: 1, warmupMs: 0, measureMs: 100 })
  // Seven browser-like headers and host; two more with a body.
  assert.deepEqual([...seen].sort(), ['GET /a  8', 'POST /b {"grüße":1} 10'])
})

test('the generator in its own process reports the load, and what it cost the server and itself', async (t) => {
  const target = await serve(t, (_request, response) => {
    response.setHeader('content-length', BODY.length)
    response.end(BODY)
  })
  const generator = new LoadGenerator()
  t.after(() => generator.stop())
  const plan = { ...target, requests: [getRequest('/')], connections: 4, warmupMs: 100, measureMs: 400 }
  const result = await generator.run({ ...plan, observedPid: process.pid })
  assert.ok(result.ok > 50)
  assert.ok(result.loadCpuUsPerRequest > 1 && result.loadCpuUsPerRequest < 500, `${result.loadCpuUsPerRequest} µs`)
  assert.ok(
    result.serverCpuUsPerRequest !== null && result.serverCpuUsPerRequest > 5,
    `${result.serverCpuUsPerRequest} µs`,
  )
  assert.ok(result.serverCpuUsPerRequest * result.ok < result.elapsedMs * 1000 * 4, 'a few cores at most')
  // A second plan runs in the same process.
  assert.ok((await generator.run({ ...plan, measureMs: 100 })).ok > 10)
})
