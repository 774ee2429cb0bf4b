// node:http alone, which answers in its own thread with the same bytes and headers as the runtime.

import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { announceReady, host, port } from './serve.ts'

const PREFIX = '/hello/'

const server = createServer((request, response) => {
  const body = JSON.stringify({ success: true, data: { hello: request.url!.slice(PREFIX.length) } })
  response
    .writeHead(200, {
      'x-request-id': request.headers['x-request-id'] ?? randomUUID(),
      'x-content-type-options': 'nosniff',
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
    })
    .end(body)
})

server.listen(port, host, announceReady)
