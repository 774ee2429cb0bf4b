import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, type TestContext, test } from 'node:test'
import pg from 'pg'
import type { Settings } from '../../../src/core/config/schema.ts'
import { freePort } from '../../support/port.ts'
import type { PostgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { until } from '../../support/until.ts'
import { gate, postgresDb } from './fixture.ts'
import { rejectsWith } from './rejects-with.ts'

const SHORT = { rdbStatementTimeoutMs: 500 }

/** Ends connections while this thread stands still, so that it cannot have seen their end. Returns when they are gone. */
function endAtOnce({ host, port, user, password, database }: PostgresServer, pids: readonly number[]): void {
  const script = `
    const client = new (require('pg').Client)(${JSON.stringify({ host, port, user, password, database })})
    void (async () => {
      await client.connect()
      await client.query('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid', [${JSON.stringify(pids)}])
      const left = 'SELECT pid FROM pg_stat_activity WHERE pid = ANY($1)'
      while ((await client.query(left, [${JSON.stringify(pids)}])).rowCount > 0);
      await client.end()
    })()`
  execFileSync(process.execPath, ['--eval', script])
}

describeOnPostgres('faults of PostgreSQL', runTests, {
  own: true,
  durable: true,
  settings: { max_connections: '40' },
})

function runTests(server: PostgresServer): void {
  const { host, port, user, password, database } = server
  // Terminates and counts the connections of others.
  const admin = new pg.Pool({ host, port, user, password, database, max: 1 })
  admin.on('error', () => {})
  after(() => admin.end())
  const dbWith = (t: TestContext, settings: Partial<Settings> = {}) => postgresDb(t, server, database, { settings })
  /** Those of the tool's connections that are in a state. */
  const backends = async (state: string, name = 'heddle lane 0 test') => {
    const { rows } = await admin.query<{ pid: number }>(
      'SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND state = $2',
      [name, state],
    )
    return rows.map(({ pid }) => pid)
  }
  const terminate = (pids: number[]) =>
    admin.query('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid', [pids])

  test('a wrong password, none at all, an unknown user and a database that is not there say what to mend', async (t) => {
    await rejectsWith(
      'unavailable',
      dbWith(t, { rdbPassword: 'wrong' }).query('SELECT 1'),
      /authentication failed.*RDB_PASSWORD/,
    )
    const without = { rdbPassword: undefined as unknown as string }
    await rejectsWith('unavailable', dbWith(t, without).query('SELECT 1'), /set RDB_PASSWORD/)
    await rejectsWith('unavailable', dbWith(t, { rdbUser: 'nobody' }).query('SELECT 1'), /RDB_USER/)
    const missing = dbWith(t, { rdbDatabase: 'not_there' }).query('SELECT 1')
    await rejectsWith('unavailable', missing, new RegExp(`createdb -h 127.0.0.1 -p ${port} -U ${user} not_there`))
  })

  test('a database whose encoding lacks characters is refused with the way out', async (t) => {
    for (const encoding of ['SQL_ASCII', 'LATIN1']) {
      const name = `encoded_${encoding.toLowerCase()}_${process.pid}`
      await admin.query(`CREATE DATABASE ${name} ENCODING '${encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
      await assert.rejects(dbWith(t, { rdbDatabase: name }).requireOwn(), {
        code: 'DATABASE_ENCODING',
        message: new RegExp(`${name} stores text as ${encoding}.*ENCODING 'UTF8' TEMPLATE template0.*RDB_DATABASE`),
      })
    }
  })

  test('a closed port and an unknown host say what to mend, at once, to everybody who waits', async (t) => {
    const closed = await freePort()
    for (const rdbHost of ['127.0.0.1', 'localhost']) {
      const db = dbWith(t, { rdbHost, rdbPort: closed })
      const message = new RegExp(`ECONNREFUSED.*nothing listens on ${rdbHost}:${closed}.*RDB_PORT`)
      const calls = [
        ...Array.from({ length: 30 }, () => db.query('SELECT 1')),
        db.transaction((tx) => tx.query('SELECT 1')),
      ]
      await Promise.all(calls.map((call) => rejectsWith('unavailable', call, message)))
      await rejectsWith('unavailable', db.healthCheck(), message)
    }
    const unknown = dbWith(t, { rdbHost: 'no-such-host.invalid' }).query('SELECT 1')
    await rejectsWith('unavailable', unknown, /no-such-host\.invalid.*RDB_HOST/)
  })

  test('a server that takes no more connections is worked with as far as it goes, and named when it takes none', async (t) => {
    await admin.query(`CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT 2`)
    await admin.query(`CREATE ROLE barred LOGIN PASSWORD 'barred' CONNECTION LIMIT 0`)
    const few = dbWith(t, { rdbUser: 'few', rdbPassword: 'few' })
    const sum = await Promise.all(
      Array.from({ length: 100 }, (_, n) => few.queryOne<{ n: number }>('SELECT $1::int AS n', [n])),
    )
    assert.deepEqual(
      sum.map((row) => row?.n),
      Array.from({ length: 100 }, (_, n) => n),
    )
    const barred = dbWith(t, { rdbUser: 'barred', rdbPassword: 'barred' })
    await rejectsWith('unavailable', barred.query('SELECT 1'), /too many connections.*RDB_MAX_POOL/)
  })

  test('never more connections are opened than the thread has a share of', async (t) => {
    const db = dbWith(t, { rdbMaxPool: 7, replicaId: 'share' })
    let most = 0
    let isDone = false
    const load = Promise.all(
      Array.from({ length: 300 }, (_, n) =>
        n % 3 === 0 ? db.transaction((tx) => tx.query('SELECT pg_sleep(0.002)')) : db.query('SELECT pg_sleep(0.002)'),
      ),
    ).finally(() => {
      isDone = true
    })
    while (!isDone) {
      const { rows } = await admin.query(
        `SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'heddle lane 0 share'`,
      )
      most = Math.max(most, rows[0].n)
    }
    await load
    assert.equal(most, 4)
  })

  test('the minimum is kept open, and opened again when it was lost', async (t) => {
    const db = dbWith(t, { rdbMinPool: 3, replicaId: 'warm' })
    await db.boot()
    const warm = () => backends('idle', 'heddle lane 0 warm')
    const before = await until(async () => ((await warm()).length === 3 ? warm() : null), 'three connections')
    await terminate(before)
    const isNew = (pids: number[]) => pids.length === 3 && !pids.some((pid) => before.includes(pid))
    await until(async () => isNew(await warm()), 'three connections again')
    assert.equal((await db.query('SELECT 1 AS n')).length, 1)
  })

  test('a connection that is ended while nobody uses it is not missed, not even before the thread has seen its end', async (t) => {
    const db = dbWith(t)
    await db.execute('CREATE TABLE missed (id TEXT PRIMARY KEY)')
    const insert = (id: string) => db.execute('INSERT INTO missed VALUES ($1)', [id])
    for (const [what, use] of Object.entries({
      check: () => db.healthCheck(),
      write: () => insert('written'),
      transaction: () => db.transaction((tx) => tx.execute(`INSERT INTO missed VALUES ('moved')`)),
    })) {
      await Promise.all(Array.from({ length: 4 }, () => db.query('SELECT pg_sleep(0.05)')))
      const pids = await until(async () => {
        const idle = await backends('idle')
        return idle.length >= 4 ? idle : null
      }, 'four idle connections')
      endAtOnce(server, pids)
      assert.ok(await use(), what)
    }
    assert.deepEqual(await db.query('SELECT id FROM missed ORDER BY id'), [{ id: 'moved' }, { id: 'written' }])
  })

  test('a connection that is ended under a statement or in a transaction fails that alone', async (t) => {
    const db = dbWith(t)
    const sleeping = rejectsWith('unavailable', db.query('SELECT pg_sleep(30)'), /terminat/)
    const inside = gate()
    const goOn = gate()
    const transaction = db.transaction(async (tx) => {
      await tx.query('SELECT 1')
      inside.open()
      await goOn.opened
      await tx.query('SELECT 2')
    })
    await inside.opened
    await until(async () => (await backends('active')).length === 1, 'the statement runs')
    await terminate([...(await backends('active')), ...(await backends('idle in transaction'))])
    await sleeping
    goOn.open()
    await rejectsWith('unavailable', transaction)
    assert.equal((await db.query('SELECT 1 AS n')).length, 1)
  })

  test('a statement that takes too long is cancelled, and the connection goes on', async (t) => {
    const db = dbWith(t, { ...SHORT, rdbMaxPool: 4 })
    const pidOf = async () => (await db.queryOne<{ pid: number }>('SELECT pg_backend_pid() AS pid'))?.pid
    const pid = await pidOf()
    await rejectsWith('timeout', db.query('SELECT pg_sleep(30)'), /statement timeout/)
    await rejectsWith(
      'timeout',
      db.transaction((tx) => tx.query('SELECT pg_sleep(30)')),
    )
    assert.equal(await pidOf(), pid)
  })

  test('who waits for a lock for too long gets a timeout', async (t) => {
    const db = dbWith(t)
    await db.execute('CREATE TABLE locked (id TEXT PRIMARY KEY)')
    await db.execute(`INSERT INTO locked VALUES ('a')`)
    await db.transaction(async (tx) => {
      await tx.execute(`UPDATE locked SET id = 'b'`)
      const other = db.transaction(async (second) => {
        await second.execute(`SET LOCAL lock_timeout = '50ms'`)
        await second.execute(`UPDATE locked SET id = 'c'`)
      })
      await rejectsWith('timeout', other, /lock timeout/)
    })
    assert.deepEqual(await db.query('SELECT id FROM locked'), [{ id: 'b' }])
  })

  test('a frozen server costs a clear timeout, and is used again when it answers', async (t) => {
    const db = dbWith(t, { ...SHORT, rdbMaxPool: 5 })
    await Promise.all([db.query('SELECT pg_sleep(0.05)'), db.query('SELECT pg_sleep(0.05)')])
    server.freeze()
    try {
      const startedMs = performance.now()
      // Two have a connection, the third needs a new one.
      const calls = [db.query('SELECT 1'), db.transaction((tx) => tx.query('SELECT 1')), db.query('SELECT 1')]
      const errors = await Promise.all(calls.map((call, n) => rejectsWith(n === 2 ? 'unavailable' : 'timeout', call)))
      assert.match(errors[0]!.message, /not answered within 2500 ms; it is not known whether the statement took effect/)
      assert.match(errors[2]!.message, /127\.0\.0\.1:\d+ does not answer|No answer from 127\.0\.0\.1/)
      assert.ok(performance.now() - startedMs < 15_000)
    } finally {
      server.thaw()
    }
    await until(() => db.healthCheck().catch(() => false), 'healthy again')
    assert.equal((await db.query('SELECT 1 AS n')).length, 1)
  })

  test('a server that is restarted under load fails what is under way, and what comes later works', async (t) => {
    const db = dbWith(t)
    await db.execute('CREATE TABLE under_load (id TEXT PRIMARY KEY)')
    const kinds = new Set<string>()
    const done: string[] = []
    let isOver = false
    const load = Promise.all(
      Array.from({ length: 20 }, async (_, caller) => {
        for (let n = 0; !isOver; n++) {
          const id = `${caller}-${n}`
          try {
            await db.execute('INSERT INTO under_load (id) VALUES ($1)', [id])
            done.push(id)
          } catch (thrown) {
            kinds.add((thrown as { kind: string }).kind)
            await new Promise((resolve) => setTimeout(resolve, 5))
          }
        }
      }),
    )
    await until(() => done.length > 200, 'load')
    await server.stop('immediate')
    await until(() => kinds.size > 0, 'failures')
    await server.start()
    const before = done.length
    await until(() => done.length > before + 200, 'load again')
    isOver = true
    await load
    assert.deepEqual([...kinds], ['unavailable'])
    const stored = new Set((await db.query<{ id: string }>('SELECT id FROM under_load')).map(({ id }) => id))
    assert.deepEqual(
      done.filter((id) => !stored.has(id)),
      [],
    )
  })
}
