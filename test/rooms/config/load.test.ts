import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { loadSettings, prepareEnvironment } from '../../../src/core/config/load.ts'
import { readVariable } from '../../../src/core/config/plugin-variables.ts'
import { settingKey, VARIABLES } from '../../../src/core/config/schema.ts'
import { faultsOf as faultsIn } from '../../support/config-faults.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { LOADER } from '../../support/loader.ts'

const SECRET = 'x'.repeat(32)
const LOAD = fileURLToPath(new URL('../../../src/core/config/load.ts', import.meta.url))

function load(env: Record<string, string> = {}) {
  return loadSettings({ AUTH_SECRET_KEY: SECRET, ...env }).settings
}

const faultsOf = (env: Record<string, string>) => faultsIn({ AUTH_SECRET_KEY: SECRET, ...env })

test('an empty environment yields the documented defaults', () => {
  const settings = load() as unknown as Record<string, unknown>
  // The page of variables has these, and test/rooms/docs holds it to the schema.
  for (const [name, row] of Object.entries(VARIABLES)) {
    if (name === 'AUTH_SECRET_KEY' || typeof row.default === 'function') continue
    const wanted = typeof row.default === 'string' ? row.read(row.default) : row.default
    assert.deepEqual(settings[settingKey(name)], wanted, name)
  }
  const { lanes, replicaId, sqlitePath, rdbMinPool, otelBspMaxExportBatchSize, schedulerEnabled, domainsDir } = load()
  assert.ok(lanes >= 1)
  assert.match(replicaId, /.+:8000$/)
  assert.deepEqual([rdbMinPool, otelBspMaxExportBatchSize, schedulerEnabled], [2, 512, true])
  assert.deepEqual([sqlitePath, domainsDir], [resolve('data/service.db'), [resolve('domains')]])
  assert.equal(settings.toolsDir, fileURLToPath(new URL('../../../src/tools', import.meta.url)))
})

test('every variable has a setting, and every setting a variable', () => {
  assert.deepEqual(Object.keys(load()).sort(), Object.keys(VARIABLES).map(settingKey).sort())
})

test('every default is one that could be given', () => {
  for (const [name, row] of Object.entries(VARIABLES)) {
    if (row.default === undefined || typeof row.default === 'function') continue
    assert.notEqual(row.read(String(row.default)), undefined, name)
  }
})

test('all faults are reported together, each with its variable and what was wanted', () => {
  const wrong = { HTTP_PORT: 'x', LANES: '0', LOG_LEVEL: 'loud', DB_AUTO_MIGRATE: 'maybe', KV_PORT: '70000' }
  const [tools, ...faults] = [faultsOf({ TOOLS: 'fan cy' }).join(), ...faultsOf(wrong)]
  assert.equal(tools, 'TOOLS: expected implementations like postgres,redis-state, got "fan cy"')
  assert.deepEqual(faults, [
    'HTTP_PORT: expected a whole number from 0 to 65535, got "x"',
    'LANES: expected a whole number from 1 to 256 (threads), got "0"',
    'DB_AUTO_MIGRATE: expected true or false, got "maybe"',
    'KV_PORT: expected a whole number from 1 to 65535, got "70000"',
    'LOG_LEVEL: expected one of debug, info, warning, error, got "loud"',
  ])
})

test('a port is a whole number in digits, and an origin has no path', () => {
  for (const text of ['1e3', '0x10', '8000.5', '8 000', '-1', 'Infinity', 'NaN', '80,00'])
    assert.equal(faultsOf({ HTTP_PORT: text }).length, 1, text)
  for (const text of ['example.com', 'https://example.com/path', 'null', 'https://a.com;https://b.com'])
    assert.equal(faultsOf({ HTTP_CORS_ORIGINS: text }).length, 1, text)
})

test('port 0 is allowed, and the replica is then told apart by its process', () => {
  const settings = load({ HTTP_PORT: '0' })
  assert.equal(settings.httpPort, 0)
  assert.match(settings.replicaId, new RegExp(`:pid${process.pid}$`))
})

test('processes of one supervisor have names of their own, and the first alone fires jobs', () => {
  const settings = ['0', '1'].map((number) => load({ NODE_APP_INSTANCE: number }))
  assert.deepEqual(
    settings.map(({ replicaId }) => replicaId.replace(/^.*?:8000/, '8000')),
    ['8000:0', '8000:1'],
  )
  assert.deepEqual(
    settings.map(({ schedulerEnabled }) => schedulerEnabled),
    [true, false],
  )
  assert.equal(load({ NODE_APP_INSTANCE: '1', SCHEDULER_ENABLED: 'true' }).schedulerEnabled, true)
  // They have one environment: a name that is given is not the name of all.
  const named = ['0', '1', '2'].map((number) => load({ NODE_APP_INSTANCE: number, REPLICA_ID: 'web' }).replicaId)
  assert.deepEqual(named, ['web', 'web:1', 'web:2'])
})

test('several processes of one guardian have what they cannot share apart, and the first alone fires jobs', () => {
  const two = { PROCESSES: '2', AUTH_SECRET_KEY: 'x'.repeat(32), REPLICA_ID: 'web', SYSTEM_PORT: '9000' }
  const settings = ['0', '1'].map((number) => load({ ...two, NODE_APP_INSTANCE: number, SCHEDULER_ENABLED: 'true' }))
  assert.deepEqual(
    settings.map(({ replicaId, systemPort, schedulerEnabled }) => [replicaId, systemPort, schedulerEnabled]),
    [
      ['web:0', 9000, true],
      ['web:1', 9001, false],
    ],
  )
  assert.match(faultsOf({ ...two, HTTP_PORT: '0' }).join(), /HTTP_PORT: expected one that 2 PROCESSES can share/)
  assert.match(faultsOf({ ...two, SYSTEM_PORT: '7999' }).join(), /SYSTEM_PORT: .* a port from 7999 to 8000/)
  assert.match(faultsOf({ ...two, SYSTEM_PORT: '65535' }).join(), /SYSTEM_PORT: expected at most 65534/)
  assert.match(
    faultsOf({ PROCESSES: '2', AUTH_SECRET_KEY: '' }).join(),
    /AUTH_SECRET_KEY: .* the same for all 2 PROCESSES/,
  )
  assert.equal(loadSettings(two, true).settings.processes, 1, 'in development there is one')
  assert.equal(loadSettings(two, false, 'db').settings.processes, 1)
})

test('HTTP_REUSE_PORT: a start without a common secret is refused', () => {
  assert.match(
    faultsOf({ HTTP_REUSE_PORT: 'true', AUTH_SECRET_KEY: '' }).join(),
    /AUTH_SECRET_KEY: .* because HTTP_REUSE_PORT is true/,
  )
  assert.equal(load({ HTTP_REUSE_PORT: 'true', AUTH_SECRET_KEY: 'x'.repeat(32) }).httpReusePort, true)
})

test('booleans are read in their usual spellings', () => {
  for (const text of ['true', 'TRUE', '1', 'yes', 'on']) assert.equal(load({ OTEL_ENABLED: text }).otelEnabled, true)
  for (const text of ['false', 'False', '0', 'no', 'off'])
    assert.equal(load({ SCHEDULER_ENABLED: text }).schedulerEnabled, false)
})

test('empty counts as unset', () => {
  const settings = load({ HTTP_PORT: '', LOG_LEVEL: ' ', KV_PASSWORD: '' })
  assert.deepEqual([settings.httpPort, settings.logLevel, settings.kvPassword], [8000, 'info', ''])
})

test('the level that other programs call warn is ours', () => {
  assert.equal(load({ LOG_LEVEL: 'WARN' }).logLevel, 'warning')
})

test('origins are a list, trimmed and in canonical form', () => {
  const settings = load({ HTTP_CORS_ORIGINS: 'https://App.example.com , http://localhost:3000/,' })
  assert.deepEqual(settings.httpCorsOrigins, ['https://app.example.com', 'http://localhost:3000'])
  assert.deepEqual(load({ HTTP_CORS_ORIGINS: '*' }).httpCorsOrigins, ['*'])
})

test('folders and files become absolute', () => {
  const settings = load({ DOMAINS_DIR: ['domains', '/srv/more'].join(delimiter), TOOLS_DIR: 't', SQLITE_PATH: 'x.db' })
  assert.deepEqual(settings.domainsDir, [resolve('domains'), '/srv/more'])
  assert.deepEqual([settings.toolsDir, settings.sqlitePath], [resolve('t'), resolve('x.db')])
  assert.equal(faultsOf({ SQLITE_PATH: ':memory:' }).length, 1)
})

test('the smallest pool may not be larger than the largest, and follows it when it is not set', () => {
  assert.equal(load({ RDB_MAX_POOL: '1' }).rdbMinPool, 1)
  assert.deepEqual(faultsOf({ RDB_MAX_POOL: '3', RDB_MIN_POOL: '4' }), [
    'RDB_MIN_POOL: expected at most RDB_MAX_POOL (3), got "4"',
  ])
})

test('a secret is never repeated in a fault', () => {
  const [fault] = faultsOf({ AUTH_SECRET_KEY: 'short-and-private' })
  assert.match(fault!, /^AUTH_SECRET_KEY: expected at least 32 characters/)
  assert.ok(!fault!.includes('private'))
})

test('a PEM key is no secret', () => {
  assert.equal(faultsOf({ AUTH_SECRET_KEY: `-----BEGIN PUBLIC KEY-----\n${'A'.repeat(64)}` }).length, 1)
})

test('without a secret a loopback host gets a random one and a warning', () => {
  for (const host of ['127.0.0.1', '127.8.8.8', 'localhost', '::1']) {
    const first = loadSettings({ HTTP_HOST: host })
    assert.ok(first.settings.authSecretKey!.length >= 32)
    assert.equal(first.warnings.filter((warning) => warning.includes('AUTH_SECRET_KEY')).length, 1)
    assert.notEqual(first.settings.authSecretKey, loadSettings({ HTTP_HOST: host }).settings.authSecretKey)
  }
})

test('without a secret any other host refuses to boot', () => {
  for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.evil.example']) {
    assert.throws(() => loadSettings({ HTTP_HOST: host }), /AUTH_SECRET_KEY: expected .* loopback/)
  }
})

test('a name that is one or two letters off is warned about, other names are not', () => {
  const { warnings } = loadSettings({ AUTH_SECRET_KEY: SECRET, HTTP_PROT: '1', LANE_STAL_MS: '1', HTTP_PROXY: 'x' })
  assert.deepEqual(warnings, [
    'HTTP_PROT is not a variable of the runtime: was HTTP_PORT meant?',
    'LANE_STAL_MS is not a variable of the runtime: was LANE_STALL_MS meant?',
  ])
  const port = loadSettings({ AUTH_SECRET_KEY: SECRET, PORT: '9000' })
  assert.deepEqual(port.warnings, ['PORT is not read: HTTP_PORT is the port to listen on'])
  assert.deepEqual(loadSettings({ AUTH_SECRET_KEY: SECRET, PORT: '9000', HTTP_PORT: '9000' }).warnings, [])
})

test('settings are frozen to the bottom and can be posted to a thread', () => {
  const settings = load()
  assert.throws(() => Object.assign(settings, { httpPort: 1 }), TypeError)
  assert.throws(() => (settings.domainsDir as string[]).push('x'), TypeError)
  assert.deepEqual(structuredClone(settings), settings)
})

test('.env of the current folder is read, and variables that are set win', (t) => {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, '.env'), 'HTTP_PORT=8111\nLANES=3\nLANE_STAL_MS=1\nNODE_OPTIONS=--no-warnings\n')
  const script = `const { loadSettings } = require(${JSON.stringify(LOAD)})
    const { settings, warnings } = loadSettings()
    console.log(JSON.stringify([settings.httpPort, settings.lanes, warnings.length]))`
  const env = { PATH: process.env.PATH, LANES: '2', AUTH_SECRET_KEY: SECRET }
  const output = execFileSync(process.execPath, [...LOADER, '--eval', script], { cwd: folder, env, encoding: 'utf8' })
  assert.deepEqual(JSON.parse(output), [8111, 2, 2])
})

test('a .env that cannot be read is a fault beside the others', (t) => {
  const folder = temporaryFolder(t)
  execFileSync('mkfifo', [join(folder, '.env')])
  const script = `const { loadSettings } = require(${JSON.stringify(LOAD)})
    try { loadSettings() } catch (error) { console.log(JSON.stringify(error.faults)) }`
  const env = { PATH: process.env.PATH, HTTP_PORT: 'x' }
  const faults = JSON.parse(
    execFileSync(process.execPath, [...LOADER, '--eval', script], { cwd: folder, env, encoding: 'utf8' }),
  )
  assert.equal(faults.length, 2)
  assert.match(faults[0], /^\.env: cannot be read: it is not a file$/)
})

test('.env: UTF-8 with a byte order mark is read as without it, any other text is a fault with its line', (t) => {
  const folder = temporaryFolder(t)
  const script = `const { loadSettings } = require(${JSON.stringify(LOAD)})
    try { loadSettings(); console.log(JSON.stringify([process.env.OWN])) } catch (error) { console.log(JSON.stringify(error.faults)) }`
  const env = { PATH: process.env.PATH, AUTH_SECRET_KEY: SECRET }
  const read = (bytes: Buffer): string[] => {
    writeFileSync(join(folder, '.env'), bytes)
    return JSON.parse(
      execFileSync(process.execPath, [...LOADER, '--eval', script], { cwd: folder, env, encoding: 'utf8' }),
    )
  }
  assert.deepEqual(read(Buffer.from('\ufeffOWN=Müller\n')), ['Müller'])
  const cannot = '.env: cannot be read: .env'
  const letter = 'the byte 0xFC (ü in Latin-1) in column 6 is not UTF-8'
  assert.deepEqual(read(Buffer.from('LANES=1\nOWN=Müller\n', 'latin1')), [
    `${cannot}:2: ${letter}. Save the file as UTF-8.`,
  ])
  assert.deepEqual(read(Buffer.from('\ufeffOWN=1', 'utf16le')), [
    `${cannot}:1: this is UTF-16. Save the file as UTF-8.`,
  ])
  assert.match(read(Buffer.from('OWN=1', 'utf16le'))[0]!, /1: a NUL/)
})

test('readVariable never hands out a secret of the runtime', (t) => {
  const names = ['AUTH_SECRET_KEY', 'RDB_PASSWORD', 'KV_PASSWORD', 'OTEL_EXPORTER_OTLP_HEADERS']
  for (const name of [...names, 'HEDDLE_TEST_OWN']) process.env[name] = 'value'
  t.after(() => {
    for (const name of [...names, 'HEDDLE_TEST_OWN']) delete process.env[name]
  })
  for (const name of names) assert.equal(readVariable(name), undefined)
  assert.equal(readVariable('HEDDLE_TEST_OWN'), 'value')
  assert.equal(readVariable('HEDDLE_TEST_UNSET'), undefined)
})

test('prepareEnvironment sets the header limit of the HTTP library only when it is unset', (t) => {
  t.after(() => {
    delete process.env.UWS_HTTP_MAX_HEADERS_SIZE
  })
  delete process.env.UWS_HTTP_MAX_HEADERS_SIZE
  prepareEnvironment()
  assert.equal(process.env.UWS_HTTP_MAX_HEADERS_SIZE, '98304')
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = '5000'
  prepareEnvironment()
  assert.equal(process.env.UWS_HTTP_MAX_HEADERS_SIZE, '5000')
})

test('npm run dev logs for people, also where its output is no terminal', () => {
  const formatOf = (isDevelopment: boolean, env = {}) =>
    loadSettings({ AUTH_SECRET_KEY: SECRET, ...env }, isDevelopment).settings.logFormat
  const otherwise = process.stdout.isTTY ? 'pretty' : 'json'
  const formats = [formatOf(false), formatOf(true), formatOf(true, { LOG_FORMAT: 'json' })]
  assert.deepEqual(formats, [otherwise, 'pretty', 'json'])
})

test('a start on Node 24.19 is warned of, and on no other', (t) => {
  const { versions } = process
  t.after(() => Object.defineProperty(process, 'versions', { value: versions }))
  const warned = (node: string): number => {
    Object.defineProperty(process, 'versions', { value: { ...versions, node } })
    const { warnings } = loadSettings({ AUTH_SECRET_KEY: SECRET })
    return warnings.filter((text) => /^Node 24\.19 /.test(text)).length
  }
  const nodes = ['22.23.2', '24.18.0', '24.19.0', '24.19.1', '24.20.0', '26.10.0']
  assert.deepEqual(nodes.map(warned), [0, 0, 1, 1, 0, 0])
})
