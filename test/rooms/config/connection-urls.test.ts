import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadSettings } from '../../../src/core/config/load.ts'
import { unreadUrls } from '../../../src/primary/tools/tool-booter.ts'
import { faultsOf as faultsIn } from '../../support/config-faults.ts'
import { temporaryFolder } from '../../support/folder.ts'

const AUTH_SECRET_KEY = 'a-secret-of-more-than-32-characters'

function load(env: Record<string, string>) {
  return loadSettings({ AUTH_SECRET_KEY, ...env })
}

function database(DATABASE_URL: string, env: Record<string, string> = {}) {
  const { rdbHost, rdbPort, rdbUser, rdbPassword, rdbDatabase, rdbTls } = load({ DATABASE_URL, ...env }).settings
  return [rdbHost, rdbPort, rdbUser, rdbPassword, rdbDatabase, rdbTls]
}

function store(REDIS_URL: string, env: Record<string, string> = {}) {
  const { kvHost, kvPort, kvUser, kvPassword, kvDb, kvTls } = load({ REDIS_URL, ...env }).settings
  return [kvHost, kvPort, kvUser, kvPassword, kvDb, kvTls]
}

const faultsOf = (env: Record<string, string>): string => faultsIn({ AUTH_SECRET_KEY, ...env }).join('\n')

test('DATABASE_URL fills every part, decoded, and leaves what it does not say', () => {
  const url = 'postgres://ada:p%40ss%2Fw%23rd@db.example.com:6543/the%20shop?sslmode=require'
  assert.deepEqual(database(url), ['db.example.com', 6543, 'ada', 'p@ss/w#rd', 'the shop', 'require'])
  assert.deepEqual(database('postgresql://db'), ['db', 5432, 'postgres', undefined, 'service', 'off'])
  assert.deepEqual(database('postgres://u@[::1]:99/'), ['::1', 99, 'u', undefined, 'service', 'off'])
  assert.deepEqual(database('postgres://u@%2Frun%2Fpg/d').slice(0, 1), ['/run/pg'])
  assert.deepEqual(database('postgres:///d?host=/run/pg&user=u').slice(0, 3), ['/run/pg', 5432, 'u'])
})

test('a variable that is set takes precedence over the part of the URL', () => {
  const set = { RDB_HOST: 'other', RDB_PASSWORD: 'mine', RDB_TLS: 'off', RDB_USER: '' }
  assert.deepEqual(database('postgres://ada:pw@db:1/shop?sslmode=verify-full', set), [
    'other',
    1,
    'ada',
    'mine',
    'shop',
    'off',
  ])
  assert.deepEqual(store('rediss://u:pw@kv:1/2', { KV_DB: '7', KV_TLS: 'require' }), ['kv', 1, 'u', 'pw', 7, 'require'])
})

test('sslmode and its kin decide the encryption', () => {
  const tls = (query: string) => database(`postgres://db/d?${query}`)[5]
  const of = {
    disable: 'off',
    require: 'require',
    'no-verify': 'require',
    'verify-ca': 'verify',
    'verify-full': 'verify',
  }
  for (const [mode, wanted] of Object.entries(of)) assert.equal(tls(`sslmode=${mode}`), wanted)
  assert.equal(tls('ssl=true'), 'verify')
  assert.equal(tls('ssl=false'), 'off')
  assert.equal(tls('sslmode=require&sslrootcert=system'), 'verify')
  assert.match(faultsOf({ DATABASE_URL: 'postgres://db/d?sslmode=prefer' }), /^DATABASE_URL: sslmode: expected one of/)
  assert.match(faultsOf({ DATABASE_URL: 'postgres://db/d?sslrootcert=/none.pem' }), /RDB_CA_FILE/)
})

test('REDIS_URL fills every part, and rediss is a checked encryption', () => {
  assert.deepEqual(store('redis://ada:p%3Aw@kv.example.com:6380/3'), ['kv.example.com', 6380, 'ada', 'p:w', 3, 'off'])
  assert.deepEqual(store('rediss://:pw@kv'), ['kv', 6379, undefined, 'pw', 0, 'verify'])
  assert.deepEqual(store('redis://kv?db=4').slice(4), [4, 'off'])
  assert.match(load({ REDIS_URL: 'redis://:pw@kv' }).warnings.join(), /KV_TLS is not set/)
  assert.doesNotMatch(load({ REDIS_URL: 'rediss://:pw@kv' }).warnings.join(), /KV_TLS/)
})

test('a URL that is wrong is a fault, whose message has no part of it', () => {
  for (const [url, wanted] of [
    ['hunter2', /expected a URL like scheme/],
    ['mysql://ada:hunter2@db/d', /expected a URL that begins with postgres:/],
    ['file:hunter2.db', /SQLITE_PATH/],
    ['postgres://ada:hunter2/x@db/d', /percent-encode/],
    ['postgres://ada:12/hunter2@db/d', /percent-encode/],
    ['postgres://ada:12#hunter2@db/d', /percent-encode/],
    ['postgres://ada:12?hunter2=1@db/d', /percent-encode/],
    ['postgres://ada:hunter2%zz@db/d', /expected %XX/],
    ['postgres://ada:hunter2@a,b/d', /expected one host/],
    ['postgres://ada:hunter2@db:0/d', /RDB_PORT by DATABASE_URL: expected a whole number from 1/],
    ['postgres://ada:hunter2@db/d/e', /got a path/],
  ] as const) {
    const faults = faultsOf({ DATABASE_URL: url })
    assert.match(faults, wanted, url)
    assert.doesNotMatch(faults, /hunter2/)
  }
  assert.match(faultsOf({ REDIS_URL: 'http://:hunter2@kv' }), /^REDIS_URL: expected a URL that begins with redis:/)
  assert.equal(
    faultsOf({ REDIS_URL: 'redis://:hunter2@kv/one' }),
    'KV_DB by REDIS_URL: expected a whole number from 0 to 1000000, got something else',
  )
})

test('options of a session say the schema, and nothing else', () => {
  const schemaOf = (options: string, env: Record<string, string> = {}) =>
    load({ DATABASE_URL: `postgres://db/d?options=${encodeURIComponent(options)}`, ...env }).settings.rdbSchema
  assert.equal(load({ DATABASE_URL: 'postgres://db/d' }).settings.rdbSchema, 'public')
  for (const options of [
    '-c search_path=shop',
    '-csearch_path="shop",pg_temp',
    '--search_path=shop',
    '-c x=1 -c search_path=shop',
  ])
    assert.equal(schemaOf(options), 'shop', options)
  assert.equal(schemaOf('-c search_path=shop', { RDB_SCHEMA: 'other' }), 'other')
  const { warnings } = load({ DATABASE_URL: 'postgres://db/d?options=-c%20statement_timeout%3D5' })
  assert.ok(
    warnings.some((each) => each.includes('nothing but -c search_path=… has an effect')),
    warnings.join('\n'),
  )
  assert.match(
    faultsOf({ DATABASE_URL: 'postgres://db/d?options=-c%20search_path%3Da,b' }),
    /^DATABASE_URL: options: expected a search_path of one schema, which is RDB_SCHEMA/,
  )
  assert.match(faultsOf({ RDB_SCHEMA: 'a"; DROP' }), /^RDB_SCHEMA: expected the name of a schema/)
})

test('parameters that nothing reads are named', () => {
  const { warnings } = load({ DATABASE_URL: 'postgres://db/d?schema=secret-value&pgbouncer=true' })
  assert.ok(warnings.includes('DATABASE_URL: these parameters have no effect: schema, pgbouncer'), warnings.join('\n'))
})

test('a URL may stand in a file', (t) => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'url')
  writeFileSync(file, 'postgres://ada:pw@db/shop\n')
  const { settings } = load({ DATABASE_URL_FILE: file })
  assert.deepEqual([settings.rdbUser, settings.rdbPassword, settings.rdbDatabase], ['ada', 'pw', 'shop'])
})

test('a URL that the tools in use do not read is said', () => {
  const { settings } = load({ DATABASE_URL: 'postgres://db', REDIS_URL: 'redis://kv' })
  const folders = (...names: string[]) => names.map((name) => ({ path: `/tools/${name}`, file: '' }))
  const of = (...names: string[]) => unreadUrls(folders(...names), settings).map((warning) => warning.split(' ')[0])
  assert.deepEqual(of('sqlite', 'memory-state'), ['DATABASE_URL', 'REDIS_URL'])
  assert.deepEqual(of('postgres', 'redis-state'), [])
  assert.deepEqual(unreadUrls(folders('memory-state'), { ...settings, eventBusDriver: 'keyvalue_streams' }), [])
})
