import assert from 'node:assert/strict'
import { access, constants, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../support/port.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { suiteOwner } from '../../support/shared-service.ts'
import { until } from '../../support/until.ts'
import { type Image, makeImage, type Running } from './image.ts'
import { readCompose, readDockerfile } from './manifests.ts'

const SECRET = { AUTH_SECRET_KEY: 'a secret that is long enough for everyone' }
const USER = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }

test('what the image copies is in the context that it is built from', async () => {
  const ignore = (await readFile(fileURLToPath(new URL('../../../.dockerignore', import.meta.url)), 'utf8')).split('\n')
  const copied = readDockerfile()[0]!
    .filter(({ name }) => name === 'COPY')
    .flatMap(({ rest }) => rest.split(' ').slice(0, -1))
  assert.ok(ignore.includes('*'))
  assert.deepEqual(
    copied.sort(),
    ignore
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1))
      .sort(),
  )
})

describe('the image', () => {
  const owner = suiteOwner()
  let image: Image

  before(async () => {
    image = await makeImage(owner)
  })

  test('the image without any argument serves from its embedded database, as another user than root', async () => {
    const port = await freePort()
    const env = { ...image.env, ...SECRET, HTTP_PORT: String(port) }
    const early = image.run(image.healthcheck, env)
    assert.equal(await early.exit, 1)
    const heddle = image.run(image.entrypoint, env)
    await serving(heddle)
    const check = image.run(image.healthcheck, env)
    assert.equal(await check.exit, 0, check.output.join(''))
    assert.equal(await signUp(port), 201)
    heddle.kill('SIGTERM')
    assert.equal(await heddle.exit, 0, heddle.output.join(''))
    await access(image.env.SQLITE_PATH!, constants.F_OK)
  })

  test('the image does not start on all addresses without a secret, and says so', async () => {
    const heddle = image.run(image.entrypoint, { ...image.env, HTTP_PORT: '0' })
    assert.equal(await heddle.exit, 78)
    assert.match(heddle.output.join(''), /AUTH_SECRET_KEY/)
  })

  test('the image of the elastic stage migrates in a step of its own, then serves without touching the schema', async (t) => {
    const postgres = await postgresServer(t)
    const redis = postgres && (await redisServer(t))
    if (redis === null) return
    await image.remake(readCompose()['x-heddle'].build.args.TOOLS.split(' '))
    const port = await freePort()
    const composed = readCompose().services['worker-1'].environment
    const servers = { ...postgres!.env, ...redis.env }
    const env = { ...image.env, ...composed, ...SECRET, ...servers, LANES: '1', HTTP_PORT: String(port) }

    const migration = image.run([...image.entrypoint, ...readCompose().services.migrate.command], {
      ...env,
      DB_AUTO_MIGRATE: 'true',
    })
    assert.equal(await migration.exit, 0, migration.output.join(''))
    const heddle = image.run(image.entrypoint, env)
    await serving(heddle)
    const check = image.run(image.healthcheck, env)
    assert.equal(await check.exit, 0, heddle.output.join(''))
    assert.equal(await signUp(port), 201)
    await assert.rejects(access(join(image.directory, 'src/tools/sqlite')))
    heddle.kill('SIGTERM')
    assert.equal(await heddle.exit, 0, heddle.output.join(''))
  })
})

async function serving(heddle: Running): Promise<void> {
  let hasEnded = false
  void heddle.exit.then(() => {
    hasEnded = true
  })
  await until(() => hasEnded || heddle.output.join('').includes('Serving on '), 'it serves', 60_000)
  assert.ok(!hasEnded, heddle.output.join(''))
}

async function signUp(port: number): Promise<number> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`http://127.0.0.1:${port}/users`, {
    method: 'POST',
    headers,
    body: JSON.stringify(USER),
  })
  return response.status
}
