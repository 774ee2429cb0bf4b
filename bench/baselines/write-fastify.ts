// Fastify, zod, better-sqlite3 and an EventEmitter: the same route as one would write it without the runtime.
import { fastify } from 'fastify'
import { addItems } from './items.ts'
import { announceReady, host, port } from './serve.ts'

const app = fastify({ logger: false })
addItems(app)

void app.listen({ host, port }).then(announceReady)
