// Fastify, zod, better-sqlite3 and an EventEmitter: the same routes as one would write them without the runtime, all in one thread,
// including those that compute and the one that never ends.
import { fastify } from 'fastify'
import { spin } from '../domains/bench/spin.ts'
import { addItems } from './items.ts'
import { announceReady, host, port } from './serve.ts'

const app = fastify({ logger: false })
addItems(app)

app.get<{ Params: { name: string } }>('/hello/:name', async ({ params }) => ({
  success: true,
  data: { hello: params.name },
}))
app.get('/system/status', async () => ({ success: true, data: { uptime: process.uptime() } }))
app.get<{ Params: { iterations: string } }>('/bench/cpu/:iterations', async ({ params }) => ({
  success: true,
  data: { checksum: spin(Number(params.iterations)) },
}))
app.get('/bench/spin', () => {
  for (;;);
})

void app.listen({ host, port }).then(announceReady)
