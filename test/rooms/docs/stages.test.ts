import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { serversEnv } from '../../shop/made-shop.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { freePort } from '../../support/port.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'
import { ROOT } from './sources.ts'

const SECTION = /\n## From one process to many\n\n```sh\n(.*?)```/s.exec(
  readFileSync(join(ROOT, 'README.md'), 'utf8'),
)![1]!
const COMMANDS = SECTION.trim().split('\n').map(variablesOf)

test('the three commands of the README start what they say, with the plugins as they are', async (t) => {
  const postgres = await postgresServer(t)
  const redis = await redisServer(t)
  if (postgres === null || redis === null) return
  const { DATABASE_URL, REDIS_URL } = serversEnv(postgres, redis)
  const values = {
    DATABASE_URL: DATABASE_URL!,
    REDIS_URL: REDIS_URL!,
    AUTH_SECRET_KEY: 'known to every process of the service',
  }
  const [one, two, many, ...more] = COMMANDS.map((named) => {
    const given = Object.entries(named).map(([name, value]) => [
      name,
      name in values ? values[name as 'DATABASE_URL'] : value,
    ])
    return Object.fromEntries(given) as Record<string, string>
  })
  assert.equal(more.length, 0)

  const embedded = await start(t, one!)
  assert.equal(await nameOf(embedded, await signUp(embedded, 'Ada')), 'Ada')
  await embedded.stop()

  const pair = await start(t, { ...two!, HTTP_PORT: String(await freePort()) })
  await until(() => pair.logs.filter(({ msg }) => msg.startsWith('Serving on ')).length === 2, 'two processes serve')
  const grace = await signUp(pair, 'Grace')
  await pair.stop()

  const [a, b] = [await start(t, many!), await start(t, many!)]
  assert.equal(await nameOf(a, grace), 'Grace')
  assert.equal(await nameOf(b, await signUp(a, 'Edsger')), 'Edsger')
})

/** The variables of a command that ends with `npm start`. */
function variablesOf(command: string): Record<string, string> {
  const [, variables] = /^((?:[A-Z_]+=\S+ )*)npm start *(?:#.*)?$/.exec(command) ?? assert.fail(command)
  return Object.fromEntries(
    variables!
      .split(' ')
      .filter(Boolean)
      .map((pair) => pair.split(/=(.*)/).slice(0, 2)),
  )
}

async function start(t: TestContext, env: Record<string, string>): Promise<Heddle> {
  const heddle = await startHeddle(t, { isGuarded: true, lanes: 1, env })
  t.after(() => heddle.stop())
  return heddle
}

async function signUp(heddle: Heddle, name: string): Promise<string> {
  const made = await heddle.post('/users', { name, email: `${name}@example.com`, password: 'correct horse battery' })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  return made.body.data.id
}

async function nameOf({ json }: Heddle, id: string): Promise<string> {
  return (await json(`/users/${id}`)).body.data.name
}
