import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import type PostgresDb from '../../../src/extras/postgres/index.ts'
import type { PostgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { postgresDb } from './fixture.ts'
import { rejectsWith } from './rejects-with.ts'

/** FATAL 57P01, as the server says it to a connection that it ends. */
const TERMINATED = (() => {
  const fields = ['SFATAL', 'VFATAL', 'C57P01', 'Mterminating connection due to administrator command']
  const body = Buffer.from(`${fields.map((field) => `${field}\0`).join('')}\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
})()

/** How a connection ends at a message of the server. */
const WAYS = {
  'with an error instead of the message': (socket: Socket) => void socket.end(TERMINATED),
  'silently instead of the message': (socket: Socket) => void socket.destroy(),
  'with an error right behind the message': (socket: Socket, message: Buffer) =>
    void socket.end(Buffer.concat([message, TERMINATED])),
}
type Way = (typeof WAYS)[keyof typeof WAYS]

interface Proxy {
  readonly port: number
  /** Connections taken so far. */
  taken: number
  /** Types of the server's messages on the newest connection. */
  messages: string[]
  /** Returns how to end a connection at this message of the server; null keeps it. */
  cutAt: ((connection: number, message: number) => Way | null) | null
}

/** Starts a proxy that ends connections at exactly the message that the test names. */
async function startProxy(t: TestContext, to: number): Promise<Proxy> {
  const sockets = new Set<Socket>()
  const proxy = { port: 0, taken: 0, messages: [] as string[], cutAt: null as Proxy['cutAt'] }
  const server = createServer({ noDelay: true }, (inward) => {
    const connection = proxy.taken++
    const outward = connect(to, '127.0.0.1').setNoDelay()
    for (const [from, other] of [
      [inward, outward],
      [outward, inward],
    ] as const) {
      sockets.add(from)
      from.on('error', () => other.destroy()).on('close', () => sockets.delete(from) && other.destroy())
    }
    inward.pipe(outward)
    const messages: string[] = []
    proxy.messages = messages
    let rest = Buffer.alloc(0)
    let isCut = false
    outward.on('data', (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes])
      while (!isCut && rest.length >= 5) {
        const length = 1 + rest.readInt32BE(1)
        if (rest.length < length) break
        const message = rest.subarray(0, length)
        rest = rest.subarray(length)
        const way = proxy.cutAt?.(connection, messages.length) ?? null
        messages.push(String.fromCharCode(message[0]!))
        if (way === null) inward.write(message)
        else {
          isCut = true
          way(inward, message)
          outward.destroy()
        }
      }
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  proxy.port = (server.address() as AddressInfo).port
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return proxy
}

describeOnPostgres('connections to PostgreSQL that end before they are used', runTests)

function runTests(server: PostgresServer): void {
  const uses: Record<string, (db: PostgresDb, id: string) => Promise<unknown>> = {
    check: (db) => db.healthCheck(),
    write: (db, id) => db.execute('INSERT INTO cut VALUES ($1)', [id]),
    transaction: (db, id) => db.transaction((tx) => tx.execute('INSERT INTO cut VALUES ($1)', [id])),
    'a look at the tables': (db) => db.requireOwn(),
  }
  const dbOf = (t: TestContext, port: number) => postgresDb(t, { ...server, port }, server.database)
  const prepare = async (t: TestContext) => {
    const proxy = await startProxy(t, server.port)
    const db = dbOf(t, server.port)
    await db.execute('DROP TABLE IF EXISTS cut')
    await db.execute('CREATE TABLE cut (id TEXT PRIMARY KEY)')
    return { proxy, stored: async () => (await db.query<{ id: string }>('SELECT id FROM cut')).map(({ id }) => id) }
  }
  /** Types of the server's messages up to the point where a connection may be used. */
  const opening = async (t: TestContext, proxy: Proxy): Promise<string[]> => {
    const db = dbOf(t, proxy.port)
    await db.boot()
    await db.query('SELECT 1')
    await db.stop()
    // The last ReadyForQuery answers the statement, the one before ends the opening.
    const end = proxy.messages.lastIndexOf('Z', proxy.messages.length - 2) + 1
    return proxy.messages.slice(0, end)
  }

  for (const [how, way] of Object.entries(WAYS)) {
    test(`opening a connection: another one replaces it when it ends ${how}, at any message`, async (t) => {
      const { proxy, stored } = await prepare(t)
      const length = (await opening(t, proxy)).length
      assert.ok(length > 20, `${length} messages`)
      const wanted: string[] = []
      for (let at = 0; at < length; at++) {
        const use = Object.keys(uses)[at % 4]!
        const db = dbOf(t, proxy.port)
        const first = proxy.taken
        proxy.cutAt = (connection, message) => (connection === first && message === at ? way : null)
        await uses[use]!(db, `${at}`).catch((thrown) => assert.fail(`${use} at message ${at}: ${thrown.message}`))
        assert.ok(proxy.taken > first + 1, 'the first one ended')
        if (use === 'write' || use === 'transaction') wanted.push(`${at}`)
        await db.stop()
      }
      assert.deepEqual((await stored()).sort(), wanted.sort())
    })
  }

  test('opening a connection: callers are served when 24 connections in a row end', async (t) => {
    const { proxy, stored } = await prepare(t)
    const length = (await opening(t, proxy)).length
    const first = proxy.taken
    const ways = Object.values(WAYS)
    // Up to eight open side by side.
    proxy.cutAt = (connection, message) =>
      connection < first + 24 && message === length - 1 - (connection % 3) ? ways[connection % 3]! : null
    const db = dbOf(t, proxy.port)
    const ids = Array.from({ length: 12 }, (_, n) => `${n}`)
    await Promise.all(ids.map((id, n) => (n % 2 === 0 ? uses.write! : uses.transaction!)(db, id)))
    assert.deepEqual((await stored()).sort(), ids.sort())
  })

  test('transaction(): begins again when its connection ends before its first statement', async (t) => {
    const { proxy, stored } = await prepare(t)
    const length = (await opening(t, proxy)).length
    const wanted: string[] = []
    for (const [name, way] of Object.entries(WAYS)) {
      for (let isBegun = false, at = length; !isBegun; at++) {
        const db = dbOf(t, proxy.port)
        const first = proxy.taken
        proxy.cutAt = (connection, message) => {
          if (connection !== first || message !== at) return null
          // After BEGIN was answered, only an error tells that the first statement has not run.
          isBegun = proxy.messages.lastIndexOf('Z') >= length
          return isBegun && name !== 'with an error instead of the message' ? null : way
        }
        const id = `${name} ${at}`
        let runs = 0
        await db.transaction(async (tx) => {
          runs++
          await tx.execute('INSERT INTO cut VALUES ($1)', [id])
        })
        assert.ok(runs <= 2)
        wanted.push(id)
        await db.stop()
      }
    }
    assert.deepEqual((await stored()).sort(), wanted.sort())
  })

  test('an idle connection: the next statement takes another one when it ends right behind an answer', async (t) => {
    const { proxy, stored } = await prepare(t)
    const wanted: string[] = []
    for (const use of Object.keys(uses)) {
      const db = dbOf(t, proxy.port)
      proxy.cutAt = null
      await db.query('SELECT 1')
      const known = proxy.taken - 1
      proxy.cutAt = (connection) =>
        connection === known && proxy.messages.at(-1) === 'C' ? WAYS['with an error right behind the message'] : null
      await db.query('SELECT 1')
      await uses[use]!(db, use)
      if (use === 'write' || use === 'transaction') wanted.push(use)
      await db.stop()
    }
    assert.deepEqual((await stored()).sort(), wanted.sort())
  })

  test('opening a connection: the error says what to look at when each one ends, and later callers are served', async (t) => {
    const { proxy } = await prepare(t)
    proxy.cutAt = () => WAYS['silently instead of the message']
    const db = dbOf(t, proxy.port)
    for (const use of Object.keys(uses)) {
      await rejectsWith('unavailable', uses[use]!(db, use), /ends connections as they are opened.*RDB_HOST/)
    }
    proxy.cutAt = null
    for (const use of Object.keys(uses)) {
      for (;;) {
        const isServed = await uses[use]!(db, use).then(
          () => true,
          () => false,
        )
        if (isServed) break
      }
    }
  })
}
