// What `heddle create --deploy` writes for each stage of an application, and the settings that its processes have then.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import { loadSettings } from '../../../src/core/config/load.ts'
import type { Settings } from '../../../src/core/config/schema.ts'
import { killAfterMs, START_MAX_MS } from '../../../src/core/config/time-limits.ts'
import { DEPLOYMENTS } from '../../../src/devtools/scaffolding/deployment.ts'
import { filled } from '../../../src/devtools/scaffolding/templates.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { type Manifest, pairs, yaml } from './manifests.ts'

const HEDDLE = fileURLToPath(new URL('../../../src/heddle.cjs', import.meta.url))
const SECRETS = { AUTH_SECRET_KEY: 'x'.repeat(64), RDB_PASSWORD: 'secret', KV_PASSWORD: 'secret' }
const IMAGE_ENV = pairs(/^ENV (.*)$/m.exec(filled('application/Dockerfile', { name: 'parcel-box' }))![1]!)

interface Place {
  manifest?: object
  dotEnv?: string
  env?: Record<string, string>
}

/** An application in a folder, and what `create --deploy` writes into it. */
function deployed(t: TestContext, { manifest = {}, dotEnv = '', env = {} }: Place, kinds = DEPLOYMENTS) {
  const folder = join(temporaryFolder(t), 'parcel-box')
  mkdirSync(folder)
  const whole = { name: 'parcel-box', dependencies: { heddle: '^0.1.0' }, ...manifest }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(whole))
  writeFileSync(join(folder, '.env'), dotEnv)
  const options = { cwd: folder, encoding: 'utf8', env: { PATH: process.env.PATH, ...env } } as const
  const args = [HEDDLE, 'create', ...kinds.flatMap((kind) => ['--deploy', kind])]
  const output = execFileSync(process.execPath, args, options)
  const read = (path: string): string => readFileSync(join(folder, 'deploy', path), 'utf8')
  return { folder, output, read }
}

const unitValue = (unit: string, name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)![1]!

/** Every process that one of the files starts: its way, how many there are, and its environment beside `.env`. */
function processesOf({ folder, read }: ReturnType<typeof deployed>) {
  const { apps } = createRequire(import.meta.url)(join(folder, 'deploy/ecosystem.config.cjs'))
  const unit = read('parcel-box.service')
  const compose = yaml.load(read('compose.yaml'))
  const config = yaml.loadAll(read('kubernetes/config.yaml')).find(({ kind }) => kind === 'ConfigMap')
  const workers = yaml.loadAll(read('kubernetes/worker.yaml'))[0]
  return {
    pm2: { count: apps[0].instances, env: apps[0].env, killMs: apps[0].kill_timeout, app: apps[0] },
    systemd: {
      count: 1,
      env: pairs(unitValue(unit, 'Environment')),
      killMs: Number(unitValue(unit, 'TimeoutStopSec')) * 1000,
    },
    compose: {
      count: 2,
      env: { ...IMAGE_ENV, ...compose.services['worker-1'].environment },
      killMs: Number.parseInt(compose.services['worker-1'].stop_grace_period, 10) * 1000,
    },
    k8s: {
      count: workers.spec.replicas as number,
      env: { ...IMAGE_ENV, ...config.data },
      killMs: workers.spec.template.spec.terminationGracePeriodSeconds * 1000,
    },
  }
}

const PLACES: Record<string, Place & { db: string; state: string; driver?: string; processes?: number }> = {
  'nothing is chosen': { db: 'sqlite', state: 'memory-state' },
  'package.json chooses PostgreSQL': {
    manifest: { heddle: { tools: { db: 'postgres' } } },
    db: 'postgres',
    state: 'memory-state',
  },
  '.env chooses PostgreSQL': { dotEnv: 'TOOLS=postgres\n', db: 'postgres', state: 'memory-state' },
  'the environment chooses PostgreSQL and Redis': {
    env: { TOOLS: 'postgres,redis-state' },
    db: 'postgres',
    state: 'redis-state',
  },
  'the environment wins over .env, which wins over package.json': {
    manifest: { heddle: { tools: { db: 'postgres' } } },
    dotEnv: 'TOOLS=db=postgres,state=redis-state\n',
    env: { TOOLS: 'db=sqlite' },
    db: 'sqlite',
    state: 'memory-state',
  },
  '.env chooses Redis Streams, and has a bad secret': {
    dotEnv: 'TOOLS=db=postgres,state=redis-state\nEVENT_BUS_DRIVER=keyvalue_streams\nAUTH_SECRET_KEY=short\n',
    db: 'postgres',
    state: 'redis-state',
    driver: 'keyvalue_streams',
  },
  'Redis keeps the state, SQLite the rows': { dotEnv: 'TOOLS=redis-state\n', db: 'sqlite', state: 'redis-state' },
  'events in memory were good enough while it was one process': {
    dotEnv: 'TOOLS=postgres\nEVENT_BUS_DRIVER=in_process\n',
    db: 'postgres',
    state: 'memory-state',
  },
  'the guardian kept three processes on PostgreSQL': {
    dotEnv: 'TOOLS=postgres\nPROCESSES=3\n',
    db: 'postgres',
    state: 'memory-state',
    processes: 3,
  },
  'the guardian was to keep two processes on SQLite': {
    dotEnv: 'PROCESSES=2\n',
    db: 'sqlite',
    state: 'memory-state',
  },
}

for (const [when, place] of Object.entries(PLACES)) {
  test(`create --deploy: no file starts several processes on what serves one, when ${when}`, (t) => {
    const application = deployed(t, place)
    for (const [kind, { count, env, killMs }] of Object.entries(processesOf(application))) {
      // As the runtime reads it: the file's environment, then .env, then package.json.
      const chosen: string =
        env.TOOLS ?? /^TOOLS=(.*)$/m.exec(place.dotEnv ?? '')?.[1] ?? manifestTools(place.manifest) ?? ''
      const items = chosen.split(',').map((item) => item.split('=').at(-1))
      const db = items.includes('postgres') ? 'postgres' : 'sqlite'
      const state = items.includes('redis-state') ? 'redis-state' : 'memory-state'
      const isElastic = kind === 'compose' || kind === 'k8s'
      assert.deepEqual(
        [db, state],
        isElastic ? ['postgres', 'redis-state'] : [place.db, place.state],
        `${kind}: ${chosen}`,
      )
      const isMany = kind === 'pm2' && db === 'postgres'
      assert.equal(count, isElastic ? 2 : isMany ? (place.processes ?? 2) : 1, kind)
      // .env stays out of the image.
      const dotEnv = isElastic ? {} : parseEnv(place.dotEnv ?? '')
      const { settings } = loadSettings({ ...dotEnv, ...env, ...SECRETS })
      assert.equal(settings.processes, 1, `${kind}: without a guardian more are refused`)
      assert.equal(settings.eventBusDriver, place.driver ?? 'database', kind)
      assert.ok(killMs >= killAfterMs(settings), `${kind}: ${killMs}`)
      if (kind === 'pm2') assert.equal(settings.httpReusePort, count > 1)
    }
    assert.match(
      application.output,
      place.db === 'postgres' ? /(?:two|3) processes on one port/ : /one process under pm2/,
    )
  })
}

const manifestTools = (manifest: Manifest): string | undefined => {
  const tools = manifest?.heddle?.tools
  return (
    tools &&
    Object.entries(tools)
      .map((entry) => entry.join('='))
      .join()
  )
}

test('create --deploy: an unknown implementation is refused, and nothing is written', (t) => {
  assert.throws(() => deployed(t, { dotEnv: 'TOOLS=postgre\n' }), /there is no implementation postgre/)
})

test('create --deploy: limits of supervisors and proxies follow the settings of the application', (t) => {
  const dotEnv = 'SHUTDOWN_TIMEOUT_MS=60000\nHTTP_HANDLER_TIMEOUT_MS=120000\nHTTP_BODY_LIMIT=20971520\n'
  const application = deployed(t, { dotEnv })
  const processes = processesOf(application)
  for (const [kind, { env, killMs }] of Object.entries(processes)) {
    const { settings } = loadSettings({ SHUTDOWN_TIMEOUT_MS: '60000', ...env, ...SECRETS })
    assert.ok(killMs >= killAfterMs(settings), `${kind}: ${killMs}`)
    if (kind !== 'pm2') limitsHold(settings)
  }
  const { proxy, ingress } = {
    proxy: application.read('nginx/parcel-box.conf'),
    ingress: application.read('kubernetes/ingress.yaml'),
  }
  assert.match(proxy, /proxy_read_timeout 125s;/)
  assert.match(proxy, /client_max_body_size 21m;/)
  assert.match(ingress, /proxy-read-timeout: 125s/)
  assert.match(ingress, /client-max-body-size: 21m/)
})

function limitsHold({ shutdownTimeoutMs, httpHandlerTimeoutMs, httpBodyLimit }: Settings): void {
  assert.deepEqual([shutdownTimeoutMs, httpHandlerTimeoutMs, httpBodyLimit], [60_000, 120_000, 20_971_520])
}

test('the file for pm2: settings of .env count, and a start has an hour', (t) => {
  const { folder } = deployed(t, {}, ['pm2'])
  const file = join(folder, 'deploy/ecosystem.config.cjs')
  const script = `process.stdout.write(JSON.stringify(require(${JSON.stringify(file)}).apps[0]))`
  const read = (env: Record<string, string>) =>
    JSON.parse(execFileSync(process.execPath, ['-e', script], { env, encoding: 'utf8' }))
  assert.equal(read({}).listen_timeout, START_MAX_MS)
  assert.equal(read({}).kill_timeout, killAfterMs({ shutdownDelayMs: 5000, shutdownTimeoutMs: 10_000 }))
  writeFileSync(join(folder, '.env'), 'SHUTDOWN_TIMEOUT_MS=90000\nSHUTDOWN_DELAY_MS=1000\n')
  assert.equal(read({}).kill_timeout, killAfterMs({ shutdownDelayMs: 1000, shutdownTimeoutMs: 90_000 }))
  const both = read({ SHUTDOWN_TIMEOUT_MS: '20000' })
  assert.equal(both.kill_timeout, killAfterMs({ shutdownDelayMs: 1000, shutdownTimeoutMs: 20_000 }))
  const copy = join(temporaryFolder(t), 'deploy')
  cpSync(join(folder, 'deploy'), copy, { recursive: true })
  assert.equal(createRequire(import.meta.url)(join(copy, 'ecosystem.config.cjs')).apps[0].instances, 1, 'without .env')
})
