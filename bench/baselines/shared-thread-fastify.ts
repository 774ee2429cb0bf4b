// Fastify, zod, better-sqlite3 and an EventEmitter: the same routes as one would write them without the runtime, all in one thread,
// including those that compute and the one that never ends.
import { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import { fastify } from 'fastify'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { itemSchema } from '../domains/bench/item-schema.ts'
import { spin } from '../domains/bench/spin.ts'
import { announceReady, host, port } from './serve.ts'

const app = fastify({ logger: false })

// `POST /bench/items`: a validated body, one insert, one event with one subscriber.
const db = new Database(process.env.SQLITE_PATH ?? ':memory:')
db.pragma('journal_mode = WAL')
db.pragma(`synchronous = ${process.env.SQLITE_SYNCHRONOUS ?? 'full'}`)
db.exec(readFileSync(new URL('../domains/bench/migrations/001_items.sql', import.meta.url), 'utf8'))
const insert = db.prepare('INSERT INTO bench_items (name, quantity, note) VALUES (?, ?, ?)')

const events = new EventEmitter()
let handled = 0
events.on('bench.item_created', (item: { id: number }) => {
  if (item.id > 0) handled++
})

db.exec('CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL, payload TEXT NOT NULL)')
const insertOutbox = db.prepare('INSERT INTO outbox (event, payload) VALUES (?, ?)')
const store = db.transaction((name: string, quantity: number, note: string | null) => {
  const id = Number(insert.run(name, quantity, note).lastInsertRowid)
  insertOutbox.run('bench.item_created', JSON.stringify({ id, name }))
  return id
})

const addRoute = (path: string, add: (name: string, quantity: number, note: string | null) => number) =>
  app.post(path, async (request, reply) => {
    const parsed = itemSchema.safeParse(request.body)
    if (!parsed.success) {
      reply.code(422)
      return { success: false, error: 'Validation failed' }
    }
    const { name, quantity, note } = parsed.data
    const id = add(name, quantity, note ?? null)
    events.emit('bench.item_created', { id, name })
    reply.code(201)
    return { success: true, data: { id } }
  })
addRoute('/bench/items', (...item) => Number(insert.run(...item).lastInsertRowid))
// The row and its event in one transaction. Whatever sends the outbox on is left out, which flatters this side.
addRoute('/bench/stored-items', store)

app.get('/bench/items/handled', async () => ({ success: true, data: { handled } }))

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
