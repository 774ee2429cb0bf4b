// What a refusal costs without the runtime: uWebSockets.js refuses every request in the turn in which it reads it, while another thread
// keeps a core busy as a lane that has too much to do does.

import uWS from 'uWebSockets.js'
import { Worker } from 'node:worker_threads'
import { announceReady, host, port } from './serve.ts'

const BODY = JSON.stringify({
  success: false,
  error: { code: 'HTTP_OVERLOADED', message: 'The service is overloaded' },
})

const app = uWS.App()

app.any('/*', (res) => {
  let isGone = false
  res.onAborted(() => {
    isGone = true
  })
  setImmediate(() => {
    if (isGone) return
    res.cork(() => {
      res
        .writeStatus('503 Service Unavailable')
        .writeHeader('retry-after', '1')
        .writeHeader('content-type', 'application/json; charset=utf-8')
        .end(BODY)
    })
  })
})

app.listen(host, port, (socket) => {
  if (!socket) throw new Error(`cannot listen on ${host}:${port}`)
  new Worker('for (;;);', { eval: true })
  announceReady()
})
