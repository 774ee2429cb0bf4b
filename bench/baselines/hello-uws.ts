// The lower bound: uWebSockets.js alone, which answers in its own thread with the same bytes and headers as the runtime.

import uWS from 'uWebSockets.js'
import { randomUUID } from 'node:crypto'
import { announceReady, host, port } from './serve.ts'

const app = uWS.App()

app.get('/hello/:name', (res, req) => {
  const requestId = req.getHeader('x-request-id') || randomUUID()
  const body = JSON.stringify({ success: true, data: { hello: req.getParameter(0) } })
  res
    .writeHeader('x-request-id', requestId)
    .writeHeader('x-content-type-options', 'nosniff')
    .writeHeader('content-type', 'application/json; charset=utf-8')
    .end(body)
})

app.listen(host, port, (socket) => {
  if (!socket) throw new Error(`cannot listen on ${host}:${port}`)
  announceReady()
})
