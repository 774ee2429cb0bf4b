import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { Plugin } from 'heddle'
import { plugin } from 'heddle/testing'

class Probe extends Plugin {}

test('{{name}} reads the value of a key', async (t) => {
  const server = createServer((request, response) => {
    if (request.url === '/here') response.end('found')
    else response.writeHead(404).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo

  const { tools } = await plugin(t, Probe, { env: { {{variable}}: `http://127.0.0.1:${port}` } })
  assert.equal(await tools.{{name}}.read('here'), 'found')
  await assert.rejects(tools.{{name}}.read('nowhere'), /answered 404 for nowhere/)
})
