import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Note } from '../../contracts/log-store.ts'
import { folderOf } from '../../support/folder.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { isEmpty, onPostgres } from './databases.ts'

const DOMAINS = fileURLToPath(new URL('../../contracts/domains', import.meta.url))

/** Passes everything on, but for the first answer with this text: its connection breaks before. */
async function cuttingProxy(t: TestContext, port: number, text: string) {
  const sockets = new Set<Socket>()
  let cuts = 0
  const proxy = createServer((client) => {
    const server = connect(port, '127.0.0.1')
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => (socket === client ? server : client).destroy())
    }
    client.pipe(server)
    server.on('data', (bytes) => {
      if (cuts > 0 || !bytes.includes(text)) return void client.write(bytes)
      cuts++
      client.destroy()
    })
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => proxy.close(resolve))
  })
  return { port: (proxy.address() as { port: number }).port, cuts: () => cuts }
}

test('a broadcast is not lost when the connection breaks while a process reads it, nor right after a long outage', async (t) => {
  const store = await onPostgres(t, false, DOMAINS)
  if (store === null) return
  const notes = join(await folderOf(t, { notes: '' }), 'notes')
  const proxy = await cuttingProxy(t, store.server!.port, 'told over there')
  const start = (name: string, env: object = {}) => {
    const own = { REPLICA_ID: name, LOG_NAME: name, LOG_NOTES: notes, LANE_ENV: 'LOG_NAME,LOG_NOTES' }
    return store.start({ EVENT_BUS_DRIVER: 'database', ...own, ...env })
  }
  const first = await start('first')
  await start('second', { RDB_HOST: '127.0.0.1', RDB_PORT: String(proxy.port) })
  const publish = (tag: string) => post(first, '/publish', { event: 'told', work: { tag, n: 1 }, options: {} })
  const told = async (tag: string): Promise<string[]> => {
    const lines = (await readFile(notes, 'utf8')).split('\n').slice(0, -1)
    return lines
      .map((line) => JSON.parse(line) as Note)
      .flatMap((note) => (note.what === 'end' && note.tag === tag ? [note.process] : []))
  }
  // The first one knows of the second a moment after that is ready.
  await until(async () => {
    await publish('before')
    return (await told('before')).includes('second')
  }, 'both take part')
  await publish('told over there')
  await until(async () => (await told('told over there')).length >= 2, 'both told')
  assert.deepEqual((await told('told over there')).sort(), ['first', 'second'])
  assert.equal(proxy.cuts(), 1)
  // The server is back, and the second process has not renewed its lease yet. One that changes is none of a dead process.
  const lapse = () =>
    store.rows("UPDATE heddle_member SET until = now() - interval '1 s' WHERE replica = 'second'").catch(() => {})
  await lapse()
  const lapsing = setInterval(lapse, 500)
  await publish('after an outage')
  await until(async () => (await told('after an outage')).length >= 2, 'both told').finally(() =>
    clearInterval(lapsing),
  )
  await isEmpty(store)
})
