import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Settings } from '../../../src/core/config/schema.ts'
import { type Authority, authority } from '../../support/certificates.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { fakePostgres } from '../../support/servers/fake-postgres.ts'
import type { PostgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { postgresDb } from './fixture.ts'
import { rejectsWith } from './rejects-with.ts'

const PASSWORD = 'the password that nobody may hear'

let authorities: [known: Authority, stranger: Authority]
describeOnPostgres(
  'PostgreSQL with TLS',
  (server) => runTests(server, authorities[0].caFile, authorities[1].caFile),
  async (owner) => {
    const folder = temporaryFolder(owner)
    authorities = [await authority(folder, 'known'), await authority(folder, 'stranger')]
    // For the address alone: `localhost` is another host.
    return { own: true, tls: await authorities[0].issue('server', 'IP:127.0.0.1') }
  },
)

function runTests(server: PostgresServer, caFile: string, strangersFile: string): void {
  const { database } = server
  const dbWith = (t: TestContext, settings: Partial<Settings>) => postgresDb(t, server, database, { settings })
  const IS_ENCRYPTED = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'

  test('off: in the clear; require: encrypted; verify: encrypted, by a trusted authority for this host', async (t) => {
    assert.deepEqual(await dbWith(t, {}).query(IS_ENCRYPTED), [{ ssl: false }])
    assert.deepEqual(await dbWith(t, { rdbTls: 'require' }).query(IS_ENCRYPTED), [{ ssl: true }])
    const verified = dbWith(t, { rdbTls: 'verify', rdbCaFile: caFile })
    assert.deepEqual(await verified.query(IS_ENCRYPTED), [{ ssl: true }])
    const sum = await verified.transaction((tx) => tx.queryOne<{ sum: number }>('SELECT $1::int + 1 AS sum', [1]))
    assert.deepEqual(sum, { sum: 2 })
  })

  test('verify refuses a certificate by another authority and for another host, and says what to mend', async (t) => {
    for (const rdbCaFile of [strangersFile, undefined]) {
      const db = dbWith(t, { rdbTls: 'verify', rdbCaFile })
      await rejectsWith('unavailable', db.query('SELECT 1'), /authority that RDB_CA_FILE names/)
    }
    const other = dbWith(t, { rdbTls: 'verify', rdbCaFile: caFile, rdbHost: 'localhost' })
    await rejectsWith('unavailable', other.query('SELECT 1'), /for another host: correct RDB_HOST/)
  })

  test('every connection of a process is encrypted: of the step that migrates, of the primary and of its lanes', async (t) => {
    const toolsDir = await toolsDirWith(t, 'postgres')
    const env = { ...server.env, TOOLS_DIR: toolsDir, RDB_TLS: 'verify', RDB_CA_FILE: caFile, RDB_MIN_POOL: '4' }
    const heddle = await startHeddle(t, { lanes: 2, env: { ...env, HEALTH_CHECK_INTERVAL: '0.05' } })
    assert.equal((await heddle.json('/users/nobody')).status, 404)
    const connections = await dbWith(t, {}).query<{ ssl: boolean; name: string }>(
      `SELECT ssl, application_name AS name FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'heddle%' AND application_name <> 'heddle lane 0 test'`,
    )
    assert.ok(connections.length >= 3, JSON.stringify(connections))
    assert.deepEqual([...new Set(connections.map(({ name }) => name.split(' ').slice(1, -1).join(' ')))].sort(), [
      'lane 0',
      'lane 1',
      'primary',
    ])
    assert.ok(
      connections.every(({ ssl }) => ssl),
      JSON.stringify(connections),
    )
  })
}

const fakeDb = (t: TestContext, port: number, settings: Partial<Settings>) =>
  postgresDb(t, { host: '127.0.0.1', port, user: 'heddle', password: PASSWORD }, 'service', { settings })

test('a server that asks for the password as text does not get it without TLS, whatever it asked for before', async (t) => {
  for (const ways of [['text'], ['md5', 'text']] as const) {
    const fake = await fakePostgres(t, ways)
    await rejectsWith(
      'unavailable',
      fakeDb(t, fake.port, {}).query('SELECT 1'),
      /as text, and the connection is not encrypted: set RDB_TLS.*RDB_ALLOW_CLEARTEXT_PASSWORD/,
    )
    assert.equal(fake.heard().includes(PASSWORD), false)
  }
  const told = await fakePostgres(t, ['text'])
  await rejectsWith('unavailable', fakeDb(t, told.port, { rdbAllowCleartextPassword: true }).query('SELECT 1'), /./)
  assert.ok(told.heard().includes(PASSWORD))
})

test('a server without TLS gets nothing when TLS is wanted', async (t) => {
  for (const rdbTls of ['require', 'verify'] as const) {
    const fake = await fakePostgres(t, ['text'])
    const db = fakeDb(t, fake.port, { rdbTls })
    await rejectsWith('unavailable', db.query('SELECT 1'), /does not support SSL.*nothing was sent: switch TLS on/)
    assert.equal(fake.heard().length % 8, 0)
    assert.equal(fake.heard().includes('heddle'), false)
  }
})
