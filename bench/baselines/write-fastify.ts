// Fastify, zod, better-sqlite3 and an EventEmitter: what one would write without the runtime for the same route.
import { fastify } from 'fastify'
import { addItems } from './items.ts'
import { announceReady, host, port } from './serve.ts'

const app = fastify({ logger: false })
addItems(app)

await app.listen({ host, port })
announceReady()
