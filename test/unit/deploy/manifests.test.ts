import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { loadSettings } from '../../../src/core/config/load.ts'
import { type Settings, VARIABLES } from '../../../src/core/config/schema.ts'
import { killAfterMs, START_MAX_MS } from '../../../src/core/config/time-limits.ts'
import { filled } from '../../../src/devtools/scaffolding/templates.ts'
import { SSE_COMMENT_MS } from '../../../src/primary/http/sent-body.ts'
import {
  DEPLOY,
  type Manifest,
  pairs,
  readCompose,
  readDeploy,
  readDockerfile,
  readEnvFile,
  readKubernetes,
  unitValues,
} from '../../rooms/deploy/manifests.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const DELAY_MS = 5000
/** After which a supervisor may kill what it has told to stop. */
const KILL_AFTER_MS = killAfterMs({
  shutdownDelayMs: DELAY_MS,
  shutdownTimeoutMs: Number(VARIABLES.SHUTDOWN_TIMEOUT_MS.default),
})
const SECRETS = { AUTH_SECRET_KEY: 'x'.repeat(64), RDB_PASSWORD: 'secret', KV_PASSWORD: 'secret' }

const compose = readCompose()
const kubernetes = readKubernetes()
const ofKind = (kind: string): Manifest[] => kubernetes.filter((object) => object.kind === kind)
const named = (kind: string, name: string): Manifest => ofKind(kind).find(({ metadata }) => metadata.name === name)
const image = Object.fromEntries(
  readDockerfile()
    .at(-1)!
    .map(({ name, rest }) => [name, rest]),
)
const imageEnv = pairs(image.ENV!)

/** The environment of each process of the elastic stage, as each way of deploying it says. */
function environments(): Record<string, Record<string, string>> {
  const all: Record<string, Record<string, string>> = {}
  for (const [name, { image, environment }] of Object.entries<Manifest>(compose.services)) {
    if (image === 'heddle:elastic') all[`compose ${name}`] = { ...imageEnv, ...environment, ...SECRETS }
  }
  const shared = { ...imageEnv, ...named('ConfigMap', 'heddle').data, ...SECRETS }
  for (const { metadata, spec } of [...ofKind('Deployment'), ...ofKind('Job')]) {
    const own = spec.template.spec.containers[0].env.map(({ name, value }: Manifest) => [name, value ?? metadata.name])
    all[`kubernetes ${metadata.name}`] = { ...shared, ...Object.fromEntries(own) }
  }
  const instances = { 'worker-1': 'HTTP_PORT=8001', leader: 'HTTP_PORT=8010 SCHEDULER_ENABLED=true' }
  for (const [instance, ownLines] of Object.entries(instances)) {
    all[`systemd ${instance}`] = { ...unitEnvironment('heddle@.service', instance), ...pairs(ownLines), ...SECRETS }
  }
  all['systemd migrate'] = { ...unitEnvironment('heddle-migrate.service', ''), ...SECRETS }
  const { apps } = createRequire(import.meta.url)(join(DEPLOY, 'elastic.config.cjs'))
  for (const { name, env, instances } of apps)
    all[`pm2 ${name}`] = { ...SECRETS, NODE_APP_INSTANCE: String(instances - 1), ...env }
  return all
}

function unitEnvironment(unit: string, instance: string): Record<string, string> {
  return pairs(unitValues(unit, 'Environment').join(' ').replaceAll('%H', 'host').replaceAll('%i', instance))
}

const settingsOf: Record<string, Settings> = {}
for (const [name, env] of Object.entries(environments())) {
  test(`the environment of ${name} is valid and names nothing that does not exist`, () => {
    assert.deepEqual(
      Object.keys(env).filter((key) => !(key in VARIABLES)),
      [],
    )
    const { settings, warnings } = loadSettings(env)
    assert.deepEqual(warnings, [])
    settingsOf[name] = settings
  })
}

test('everywhere only the migration step migrates, only the leader fires jobs, and replicas share events by streams', () => {
  for (const [name, { dbAutoMigrate, schedulerEnabled, eventBusDriver }] of Object.entries(settingsOf)) {
    assert.equal(dbAutoMigrate, name.includes('migrate'), name)
    if (name.includes('migrate')) continue
    assert.equal(schedulerEnabled, name.includes('leader'), name)
    assert.equal(eventBusDriver, 'keyvalue_streams', name)
  }
  assert.equal(
    Object.keys(settingsOf).filter((name) => name.startsWith('compose') && name.includes('worker')).length,
    2,
  )
  const leader = named('Deployment', 'heddle-leader').spec
  assert.equal(leader.replicas, 1)
  assert.deepEqual(leader.strategy, { type: 'Recreate' })
})

test('every way of deploying closes /system, and keeps its health on the public port', () => {
  const { apps } = createRequire(import.meta.url)(join(DEPLOY, 'ecosystem.config.cjs'))
  const all = {
    ...environments(),
    image: imageEnv,
    'systemd alone': unitEnvironment('heddle.service', ''),
    'pm2 alone': apps[0].env,
  }
  for (const [name, env] of Object.entries(all)) {
    if (name.includes('migrate')) continue
    const { settings } = loadSettings({ ...SECRETS, ...env })
    assert.ok(settings.systemPort !== undefined, name)
    assert.equal(settings.systemHost, '127.0.0.1', name)
    assert.notEqual(settings.systemPort, settings.httpPort, name)
  }
})

test('each replica has a name of its own', () => {
  const names = Object.keys(settingsOf).filter((name) => name.startsWith('compose'))
  assert.equal(new Set(names.map((name) => settingsOf[name]!.replicaId)).size, names.length)
  for (const { spec } of ofKind('Deployment')) {
    const replicaId = spec.template.spec.containers[0].env.find(({ name }: Manifest) => name === 'REPLICA_ID')
    assert.equal(replicaId.valueFrom.fieldRef.fieldPath, 'metadata.name')
  }
  assert.match(unitValues('heddle@.service', 'Environment').join(' '), /REPLICA_ID=%H:%i/)
})

test('every secret is asked for, and none is written down', () => {
  const wanted = [...readDeploy('compose.yaml').matchAll(/\$\{(\w+)/g)].map(([, name]) => name!)
  const example = readEnvFile('elastic.env.example')
  assert.deepEqual(Object.keys(example).sort(), [...new Set(wanted)].sort())
  assert.deepEqual(Object.keys(named('Secret', 'heddle').stringData).sort(), Object.keys(example).sort())
  for (const value of [...Object.values(example), ...Object.values(named('Secret', 'heddle').stringData)])
    assert.equal(value, '')
  for (const name of Object.keys(example)) assert.ok(VARIABLES[name as 'KV_PASSWORD'].secret, name)
})

test('ports agree: the image, the proxy, the pods and the services', () => {
  const port = Number(imageEnv.HTTP_PORT)
  assert.equal(imageEnv.HTTP_HOST, '0.0.0.0')
  assert.equal(Number(image.EXPOSE), port)
  const upstreams = [...readDeploy('nginx/heddle.conf').matchAll(/^ {2}server ([\w-]+):(\d+)/gm)]
  assert.deepEqual(
    upstreams.map(([, host]) => host),
    ['worker-1', 'worker-2'],
  )
  assert.deepEqual([...new Set(upstreams.map(([, , text]) => Number(text)))], [port])
  for (const [, host] of upstreams) assert.ok(compose.services[host!], host)
  for (const { spec } of ofKind('Deployment')) {
    assert.deepEqual(spec.template.spec.containers[0].ports, [{ name: 'http', containerPort: port }])
  }
  const service = named('Service', 'heddle')
  assert.equal(service.spec.ports[0].targetPort, 'http')
  const [{ spec }] = ofKind('Ingress')
  for (const { backend } of spec.rules[0].http.paths) {
    const target = named('Service', backend.service.name)
    assert.equal(backend.service.port.name, target.spec.ports[0].name)
  }
})

test('requests go to the workers alone, and selectors find what they mean', () => {
  const service = named('Service', 'heddle')
  const [budget] = ofKind('PodDisruptionBudget')
  const labels = (name: string) => named('Deployment', name).spec.template.metadata.labels
  assert.deepEqual(service.spec.selector, labels('heddle-worker'))
  assert.deepEqual(budget.spec.selector.matchLabels, labels('heddle-worker'))
  for (const { metadata, spec } of ofKind('Deployment')) {
    assert.deepEqual(spec.selector.matchLabels, labels(metadata.name))
  }
  assert.notDeepEqual(labels('heddle-leader'), labels('heddle-worker'))
})

test('probes ask for endpoints that there are, liveness never for what a database does', () => {
  const sources = readdirSync(join(ROOT, 'domains/system/plugins'))
  const endpoints = sources.map((name) => readDeploy(`../domains/system/plugins/${name}`)).join('\n')
  const paths = new Set<string>()
  for (const { spec } of ofKind('Deployment')) {
    const { startupProbe, livenessProbe, readinessProbe } = spec.template.spec.containers[0]
    assert.equal(startupProbe.httpGet.path, '/system/health/live')
    assert.equal(livenessProbe.httpGet.path, '/system/health/live')
    assert.equal(readinessProbe.httpGet.path, '/system/health/ready')
    for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) {
      paths.add(httpGet.path)
      assert.equal(httpGet.port, 'http')
    }
  }
  assert.match(image.HEALTHCHECK!, /\/system\/health\/ready/)
  for (const path of paths) assert.ok(endpoints.includes(`'${path}'`), path)
})

test('whoever stops a process waits until it has ended by itself', () => {
  const { apps } = createRequire(import.meta.url)(join(DEPLOY, 'ecosystem.config.cjs'))
  const limits: Record<string, number> = { pm2: apps[0].kill_timeout }
  for (const { metadata, spec } of ofKind('Deployment'))
    limits[metadata.name] = spec.template.spec.terminationGracePeriodSeconds * 1000
  for (const name of ['worker-1', 'worker-2', 'leader'])
    limits[name] = Number.parseInt(compose.services[name].stop_grace_period, 10) * 1000
  for (const unit of ['heddle.service', 'heddle@.service'])
    limits[unit] = Number(unitValues(unit, 'TimeoutStopSec')[0]) * 1000
  for (const [name, limitMs] of Object.entries(limits)) assert.ok(limitMs >= KILL_AFTER_MS, `${name}: ${limitMs}`)
})

test('whoever starts a process waits as long as a start may take', () => {
  for (const file of ['ecosystem.config.cjs', 'elastic.config.cjs'])
    for (const { name, wait_ready, listen_timeout } of createRequire(import.meta.url)(join(DEPLOY, file)).apps)
      assert.deepEqual([wait_ready, listen_timeout], [true, START_MAX_MS], name)
  for (const unit of ['heddle.service', 'heddle@.service', 'heddle-migrate.service'])
    assert.equal(unitValues(unit, 'TimeoutStartSec')[0], `${START_MAX_MS / 3_600_000}h`, unit)
  for (const { spec } of ofKind('Deployment')) {
    const { startupProbe } = spec.template.spec.containers[0]
    assert.equal(startupProbe.periodSeconds * startupProbe.failureThreshold * 1000, START_MAX_MS)
    assert.ok(spec.progressDeadlineSeconds * 1000 > START_MAX_MS)
  }
  for (const { spec } of ofKind('Job')) assert.ok(spec.activeDeadlineSeconds * 1000 >= START_MAX_MS)
  const ofApplication = filled('application/Dockerfile', { name: 'my-app' })
  for (const check of [image.HEALTHCHECK!, ofApplication])
    assert.equal(/--start-period=(\w+)/.exec(check)?.[1], `${START_MAX_MS / 3_600_000}h`)
})

test('a process that stops serves for longer than the proxy leaves out one that is back', () => {
  for (const [name, { shutdownDelayMs }] of Object.entries(settingsOf))
    if (!name.includes('migrate')) assert.equal(shutdownDelayMs, DELAY_MS, name)
  assert.match(unitValues('heddle.service', 'Environment').join(' '), new RegExp(`SHUTDOWN_DELAY_MS=${DELAY_MS}\\b`))
  const pauses = [...readDeploy('nginx/heddle.conf').matchAll(/fail_timeout=(\d+)s/g)].map(([, text]) => Number(text))
  assert.equal(pauses.length, 2)
  for (const pauseSec of pauses) assert.ok(pauseSec * 1000 < DELAY_MS)
})

test('the proxy gives up later than heddle does, and lets through what heddle refuses in its own words', () => {
  const text = readDeploy('nginx/heddle.conf')
  const setting = (name: string): string => new RegExp(`^ +${name} (.*);$`, 'm').exec(text)![1]!
  assert.ok(
    Number.parseInt(setting('proxy_read_timeout'), 10) * 1000 > Number(VARIABLES.HTTP_HANDLER_TIMEOUT_MS.default),
  )
  assert.ok(Number.parseInt(setting('proxy_read_timeout'), 10) * 1000 > 2 * SSE_COMMENT_MS)
  assert.ok(
    Number.parseInt(setting('client_max_body_size'), 10) * 1024 ** 2 > Number(VARIABLES.HTTP_BODY_LIMIT.default),
  )
  assert.doesNotMatch(setting('proxy_next_upstream'), /non_idempotent|http_/)
  const { annotations } = named('Ingress', 'heddle').metadata
  for (const name of ['client_max_body_size', 'proxy_connect_timeout', 'proxy_send_timeout', 'proxy_read_timeout']) {
    assert.equal(annotations[`nginx.org/${name.replaceAll('_', '-')}`], setting(name), name)
  }
})

test('the cluster sends nothing under /system to a pod', () => {
  const { paths } = named('Ingress', 'heddle').spec.rules[0].http
  const target = (path: string) => paths.find((one: Manifest) => one.path === path).backend.service.name
  assert.equal(named('Service', target('/system')).spec.selector, undefined)
  assert.equal(target('/'), 'heddle')
})

test('containers run without root and without a file system that they could change', () => {
  assert.match(image.USER!, /^[1-9]\d*:[1-9]\d*$/)
  assert.equal(image.STOPSIGNAL, 'SIGTERM')
  for (const { spec } of [...ofKind('Deployment'), ...ofKind('Job')]) {
    const { securityContext: ofPod, containers, volumes } = spec.template.spec
    assert.equal(`${ofPod.runAsUser}:${ofPod.runAsGroup}`, image.USER)
    assert.equal(ofPod.runAsNonRoot, true)
    const { readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities } = containers[0].securityContext
    assert.deepEqual([readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities.drop], [true, false, ['ALL']])
    assert.deepEqual(containers[0].volumeMounts, [{ name: 'tmp', mountPath: '/tmp' }])
    assert.deepEqual(volumes, [{ name: 'tmp', emptyDir: {} }])
  }
  for (const name of ['migrate', 'worker-1', 'worker-2', 'leader']) {
    const { read_only, tmpfs, cap_drop } = compose.services[name]
    assert.deepEqual([read_only, tmpfs, cap_drop], [true, ['/tmp'], ['ALL']], name)
  }
})

test('the migration comes before the replicas, the replicas before the proxy', () => {
  const { services } = compose
  assert.deepEqual(services.migrate.command, ['--boot-tool', 'db'])
  assert.deepEqual(named('Job', 'heddle-migrate').spec.template.spec.containers[0].args, ['--boot-tool', 'db'])
  for (const name of ['worker-1', 'worker-2', 'leader']) {
    assert.equal(services[name].depends_on.migrate.condition, 'service_completed_successfully', name)
    assert.equal(services[name].depends_on.redis.condition, 'service_healthy', name)
  }
  assert.deepEqual(Object.keys(services.proxy.depends_on), ['worker-1', 'worker-2'])
  const redis = services.redis.command.join(' ')
  assert.match(redis, /--appendonly yes/)
  assert.match(redis, /--maxmemory-policy noeviction/)
  // The store and the database are on a network without a way in or out.
  assert.equal(compose.networks.data.internal, true)
  assert.deepEqual([services.postgres.networks, services.redis.networks], [['data'], ['data']])
  for (const [name, { ports }] of Object.entries<Manifest>(services))
    assert.equal(ports !== undefined, name === 'proxy', name)
})

test('files that the deployment names are there, and tools that the image takes exist', () => {
  for (const volume of compose.services.proxy.volumes) {
    const [host] = volume.split(':')
    // The certificate is the user's.
    if (host !== './tls') assert.ok(existsSync(join(DEPLOY, host)), host)
  }
  for (const tool of compose['x-heddle'].build.args.TOOLS.split(' ')) {
    assert.ok(
      ['tools', 'extras'].some((place) => existsSync(join(ROOT, 'src', place, tool, 'index.ts'))),
      tool,
    )
  }
})

test('every start that is shipped sizes the thread pool before the loader uses it', async () => {
  const root = new URL('../../../', import.meta.url)
  const files = {
    // `npm run dev` and its profile; `npm start` has a guardian, which starts the runtime so, too.
    'package.json': 2,
    'deploy/Dockerfile': 1,
    'deploy/heddle.service': 1,
    'deploy/heddle@.service': 1,
    'deploy/heddle-migrate.service': 1,
    'deploy/ecosystem.config.cjs': 1,
  }
  for (const [file, count] of Object.entries(files)) {
    const starts = (await readFile(new URL(file, root), 'utf8')).match(/.*\bsrc\/main\.ts\b.*/g)!
    assert.equal(starts.length, count, file)
    for (const start of starts) assert.match(start, /--require[", ]+\.\/src\/preload\.cjs[", ]+src\/main\.ts/, file)
  }
  const { scripts } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
  assert.equal(scripts.start, 'exec node src/guardian.cjs')
})
