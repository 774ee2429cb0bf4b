import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadSettings } from '../../../src/core/config/load.ts'
import { VARIABLES } from '../../../src/core/config/schema.ts'
import { filled } from '../../../src/devtools/scaffolding/templates.ts'
import { ROOT } from '../../rooms/docs/sources.ts'
import { stepsOf } from '../../rooms/guides/page.ts'

// biome-ignore lint/suspicious/noExplicitAny: a manifest has the shape that its kind says; a test asserts what it needs
type Manifest = any

// It comes with pm2.
const yaml = createRequire(import.meta.url)('js-yaml') as { load(text: string): Manifest }

const PAGE = readFileSync(join(ROOT, 'src/guides/docker.md'), 'utf8')
const DOCKERFILE = filled('application/Dockerfile', { name: 'my-app' }).replaceAll('\\\n', '')
const imageEnv = pairs(/^ENV (.*)$/m.exec(DOCKERFILE)![1]!, ' ')
/** What `production.env` has. */
const SECRETS = {
  DB_PASSWORD: 'a',
  KV_PASSWORD: 'b',
  AUTH_SECRET_KEY: 'c'.repeat(64),
  HTTP_ALLOWED_HOSTS: 'example.com',
}

function pairs(text: string, separator: string): Record<string, string> {
  const lines = text.trim().split(separator)
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
}

function composeFile(path: string) {
  const step = stepsOf(PAGE).find((each) => each.kind === 'file' && each.path === path)
  assert.equal(step?.kind, 'file', path)
  return yaml.load(
    (step as { text: string }).text.replace(/\$\{(\w+):\?\}/g, (_, name) => {
      assert.ok(name in SECRETS, `production.env has ${name}`)
      return SECRETS[name as keyof typeof SECRETS]
    }),
  )
}

for (const path of ['compose.dev.yaml', 'compose.yaml']) {
  test(`${path} names services, volumes and variables that there are, and images that can be checked`, () => {
    const { services, volumes } = composeFile(path)
    for (const [name, service] of Object.entries<Manifest>(services)) {
      for (const other of Object.keys(service.depends_on ?? {})) assert.ok(other in services, `${name} → ${other}`)
      for (const volume of service.volumes ?? []) assert.ok(volume.split(':')[0] in volumes, `${name}: ${volume}`)
      for (const port of service.ports ?? []) assert.match(port, /^127\.0\.0\.1:/, 'for this machine alone')
      if (service.image !== 'my-app') continue
      const env = { ...imageEnv, ...service.environment }
      assert.deepEqual(
        Object.keys(env).filter((key) => !(key in VARIABLES)),
        [],
      )
      const { settings, warnings } = loadSettings(env)
      assert.deepEqual(warnings, [], name)
      assert.equal(settings.rdbHost, 'postgres')
      assert.equal(settings.kvHost, 'redis')
      assert.equal(settings.dbAutoMigrate, name === 'migrate')
      const graceMs = Number.parseInt(service.stop_grace_period, 10) * 1000
      assert.ok(graceMs >= settings.shutdownDelayMs + settings.shutdownTimeoutMs + 5000)
      assert.ok(service.tmpfs.some((place: string) => settings.sqlitePath.startsWith(place.split(':')[0]!)))
    }
  })
}

test('the servers of development are those that .env names', () => {
  const { services } = composeFile('compose.dev.yaml')
  const env = pairs(/```ini\n(.*?)```/s.exec(PAGE)![1]!, '\n')
  const { settings } = loadSettings(env)
  const { POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB } = services.postgres.environment
  assert.deepEqual(
    [settings.rdbUser, settings.rdbPassword, settings.rdbDatabase],
    [POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB],
  )
  assert.ok(services.postgres.ports.includes(`127.0.0.1:${settings.rdbPort}:5432`))
  assert.ok(services.redis.ports.includes(`127.0.0.1:${settings.kvPort}:6379`))
  assert.ok(services.redis.command.includes(settings.kvPassword))
})

test('what the page says of the image is in the Dockerfile', () => {
  const table = PAGE.slice(PAGE.indexOf('| in the image |'), PAGE.indexOf('- **heddle is not'))
  for (const [, said] of table.matchAll(/^\| `([^`]+)`/gm)) {
    const isThere = said!.split(' ').every((word) => DOCKERFILE.includes(word))
    assert.ok(isThere, said)
  }
})
