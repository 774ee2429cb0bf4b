import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadSettings } from '../../../src/core/config/load.ts'
import { filled } from '../../../src/devtools/scaffolding/templates.ts'
import { ROOT } from '../../rooms/docs/sources.ts'
import { stepsOf } from '../../rooms/guides/page.ts'

// biome-ignore lint/suspicious/noExplicitAny: a manifest has the shape that its kind says; a test asserts what it needs
type Manifest = any

// It comes with pm2.
const yaml = createRequire(import.meta.url)('js-yaml') as { load(text: string): Manifest }

const PAGE = readFileSync(join(ROOT, 'src/guides/docker.md'), 'utf8')
const DOCKERFILE = filled('application/Dockerfile', { name: 'my-app' }).replaceAll('\\\n', '')

test('the servers of development are those that .env names', () => {
  const step = stepsOf(PAGE).find((each) => each.kind === 'file' && each.path === 'compose.dev.yaml')
  const { services, volumes } = yaml.load((step as { text: string }).text)
  for (const [name, service] of Object.entries<Manifest>(services)) {
    for (const volume of service.volumes ?? []) assert.ok(volume.split(':')[0] in volumes, `${name}: ${volume}`)
    for (const port of service.ports) assert.match(port, /^127\.0\.0\.1:/, 'for this machine alone')
  }
  const lines = /```ini\n(.*?)\n```/s.exec(PAGE)![1]!.split('\n')
  const { settings } = loadSettings(Object.fromEntries(lines.map((line) => line.split(/=(.*)/).slice(0, 2))))
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
