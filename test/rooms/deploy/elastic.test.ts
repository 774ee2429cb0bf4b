import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { spawnHeddle } from '../../support/heddle.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'
import { CHEAP_AUTH } from '../../support/users-service.ts'
import { unitValues } from './manifests.ts'
import { type Proxied, startProxied } from './proxied.ts'

const JSON_BODY = { 'content-type': 'application/json' }
const PASSWORD = 'correct horse battery'

test('the elastic stage behind the proxy: migrated once, then two replicas are one service', async (t) => {
  const postgres = await postgresServer(t)
  const redis = postgres && (await redisServer(t))
  if (redis === null) return
  const TOOLS_DIR = await toolsDirWith(t, 'postgres', 'redis-state', CHEAP_AUTH)
  const shared = { ...postgres!.env, ...redis.env, TOOLS_DIR }

  const migration = await spawnHeddle(t, { args: ['--boot-tool', 'db'], env: { ...shared, DB_AUTO_MIGRATE: 'true' } })
  const [code] = await once(migration.child, 'exit')
  assert.equal(code, 0, migration.errors.join(''))

  const ofUnit = unitValues('heddle@.service', 'Environment').join(' ').split(' ')
  const settings = ofUnit.map((pair) => pair.split('=') as [string, string]).filter(([name]) => name !== 'REPLICA_ID')
  const proxied = await startProxied(t, {
    env: { ...shared, ...Object.fromEntries(settings) },
  })
  if (proxied === null) return
  const { send, replicas } = proxied
  for (const { heddle } of replicas) assert.equal((await heddle.fetch('/system/health/ready')).status, 200)

  const emails = Array.from({ length: 8 }, (_, n) => `ada${n}@example.com`)
  const post = (path: string, body: object) =>
    send(path, { method: 'POST', headers: JSON_BODY, body: JSON.stringify(body) })
  const created = await Promise.all(emails.map((email) => post('/users', { name: 'Ada', email, password: PASSWORD })))
  assert.deepEqual(
    created.map(({ status }) => status),
    emails.map(() => 201),
  )
  const { text } = await post('/login', { email: emails[0], password: PASSWORD })
  const authorization = `Bearer ${JSON.parse(text).data.token}`
  // A token made by the one is good for the other.
  for (const { heddle } of replicas)
    assert.equal((await heddle.fetch('/users/me', { headers: { authorization } })).status, 200)
  const taken = await post('/users', { name: 'Ada', email: emails[0], password: PASSWORD })
  assert.equal(taken.status, 409)

  // One is replaced: what was made through either is there.
  assert.equal(await replicas[0].heddle.stop(), 0)
  assert.equal((await send('/users/me', { headers: { authorization } })).status, 200)
  await replicas[0].start()
  await until(async () => (await send('/users/me', { headers: { authorization } })).status === 200, 'an answer')
  assert.equal((await answeredBy(proxied)).size, 2)
})

/** The replicas that the access log names. */
async function answeredBy({ nginx }: Proxied): Promise<Set<string>> {
  const lines = (await readFile(`${nginx.directory}/access.log`, 'utf8')).trim().split('\n')
  return new Set(lines.map((line) => JSON.parse(line).replica as string).filter((address) => /^[\d.:]+$/.test(address)))
}
