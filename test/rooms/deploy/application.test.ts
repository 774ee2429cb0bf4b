import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { loadSettings } from '../../../src/core/config/load.ts'
import { VARIABLES } from '../../../src/core/config/schema.ts'
import { DEPLOYMENTS, scaffoldDeployment, stageOf } from '../../../src/devtools/scaffolding/deployment.ts'
import { filled } from '../../../src/devtools/scaffolding/templates.ts'
import { authority } from '../../support/certificates.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freePort } from '../../support/port.ts'
import { type Manifest, pairs, yaml } from './manifests.ts'
import { startProxy } from './proxied.ts'

const NAME = 'parcel-box'
const SECRETS = { AUTH_SECRET_KEY: 'x'.repeat(64), RDB_PASSWORD: 'secret', KV_PASSWORD: 'secret' }
const DOCKERFILE = filled('application/Dockerfile', { name: NAME }).replaceAll('\\\n', '')
const inImage = (instruction: string): string => new RegExp(`^${instruction} (.*)$`, 'm').exec(DOCKERFILE)![1]!
const IMAGE_ENV = pairs(inImage('ENV'))
const START = (JSON.parse(inImage('ENTRYPOINT')) as string[]).slice(1).join(' ')
const UNIT = `deploy/${NAME}.service`

const files = new Map(
  scaffoldDeployment('', NAME, DEPLOYMENTS, stageOf([])).files.map(({ path, text }) => [path, text]),
)
const unitValue = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(files.get(UNIT)!)![1]!
const kubernetes: Manifest[] = [...files].flatMap(([path, text]) =>
  path.startsWith('deploy/kubernetes/') ? yaml.loadAll(text) : [],
)
const compose = yaml.load(files.get('deploy/compose.yaml')!)

const folder = temporaryFolder({ after })
let processFile: Manifest
before(async () => {
  for (const [path, text] of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  processFile = createRequire(import.meta.url)(join(folder, 'deploy/ecosystem.config.cjs'))
})

test('systemd and pm2 start what the image of the application starts', () => {
  assert.equal(START, 'node_modules/heddle/dist/src/heddle.cjs start')
  assert.equal(unitValue('ExecStart'), `/usr/bin/node ${START}`)
  assert.equal(unitValue('WorkingDirectory'), `/opt/${NAME}`)
  const [{ name, args, cwd, script }] = processFile.apps
  assert.deepEqual([name, args, cwd, script], [NAME, START, folder, process.execPath])
  for (const [path, text] of files) assert.doesNotMatch(text, /src\/main\.ts|preload|\/(?:opt|etc|lib)\/heddle/, path)
})

test('every environment is valid, closes /system, and lets the process serve for a while before it drains', () => {
  const [config] = kubernetes.filter(({ kind }) => kind === 'ConfigMap')
  const environments: Record<string, Record<string, string>> = {
    systemd: pairs(unitValue('Environment')),
    pm2: processFile.apps[0].env,
    kubernetes: { ...IMAGE_ENV, ...config.data },
  }
  for (const [name, { image, environment }] of Object.entries<Manifest>(compose.services))
    if (image === NAME) environments[`compose ${name}`] = { ...IMAGE_ENV, ...environment }
  assert.equal(Object.keys(environments).length, 7)
  for (const [name, env] of Object.entries(environments)) {
    const unknown = Object.keys(env).filter((key) => !(key in VARIABLES))
    assert.deepEqual(unknown, [], name)
    const { settings, warnings } = loadSettings({ ...env, ...SECRETS })
    assert.deepEqual(warnings, [], name)
    assert.equal(settings.shutdownDelayMs, 5000, name)
    assert.notEqual(settings.systemPort, undefined, name)
    // An application has the package: its tools are chosen, not moved.
    if (name.startsWith('compose') || name === 'kubernetes') assert.equal(settings.tools, 'postgres,redis-state', name)
  }
})

test('objects, services and files have the name of the application, and find each other', () => {
  const images = kubernetes.flatMap(({ spec }) => spec?.template?.spec.containers ?? []).map(({ image }) => image)
  assert.deepEqual([...new Set(images)], [`${NAME}:1`])
  for (const { metadata } of kubernetes) assert.match(metadata.name, new RegExp(`^${NAME}(?:-|$)`))
  assert.equal(compose.name, NAME)
  assert.deepEqual(compose.services['worker-1'].build, '..')
  for (const volume of compose.services.proxy.volumes) {
    const [host] = volume.split(':')
    if (host !== './tls') assert.ok(files.has(join('deploy', host)), host)
  }
  const wanted = [...files.get('deploy/compose.yaml')!.matchAll(/\$\{(\w+)/g)].map(([, name]) => name!)
  const example = files.get('deploy/production.env.example')!
  assert.deepEqual([...example.matchAll(/^(\w+)=$/gm)].map(([, name]) => name).sort(), [...new Set(wanted)].sort())
  assert.throws(() => scaffoldDeployment('', 'Parcel Box', ['pm2'], stageOf([])), /my-app/)
})

const ANALYZE = { skip: spawnSync('systemd-analyze', ['--version']).error && 'systemd-analyze is not installed' }

test('systemd accepts the unit', ANALYZE, async () => {
  const path = join(folder, 'checked.service')
  await writeFile(path, files.get(UNIT)!.replace('/usr/bin/node', process.execPath))
  const { stdout, stderr } = await promisify(execFile)('systemd-analyze', ['verify', path])
  assert.equal((stdout + stderr).replace(/.*(man |Cannot add dependency).*\n/g, ''), '')
})

test('nginx takes its file, which has no limits for routes of the examples', async (t) => {
  const configuration = files.get(`deploy/nginx/${NAME}.conf`)!
  assert.doesNotMatch(configuration, /\/users|\/login|signups|logins|hashing/)
  const ports = { 'worker-1': await freePort(), 'worker-2': await freePort() }
  const { issue } = await authority(temporaryFolder(t), 'proxy')
  const nginx = await startProxy(t, configuration, ports, await issue('nginx', `DNS:${NAME}.example.com`))
  if (nginx === null) return
  const { status, headers } = await fetch(`http://127.0.0.1:${nginx.ports[0]}/parcels`, { redirect: 'manual' })
  assert.deepEqual([status, headers.get('location')], [308, 'https://127.0.0.1/parcels'])
})
