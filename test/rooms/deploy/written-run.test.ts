// The written files for compose, Kubernetes and systemd, run as processes: their commands, environments, health checks and signals.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { Agent } from 'node:https'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { authority } from '../../support/certificates.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freePort } from '../../support/port.ts'
import { rowsOfFile, rowsOfServer } from '../../support/rows.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'
import { allHandled, deployedApplication, moreOrders, NAME, startOrders } from './deployed.ts'
import { type Manifest, pairs, yaml } from './manifests.ts'
import { startProxy } from './proxied.ts'

const START_MS = 120_000
const SECRET = { AUTH_SECRET_KEY: 'a secret that all of the processes have' }

interface Running {
  child: ChildProcess
  output(): string
}

/** Runs a command of a file in the folder of the application, with that environment alone. */
function run(t: TestContext, folder: string, command: readonly string[], env: Record<string, string>): Running {
  const child = spawn(process.execPath, command.slice(1), {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, LANES: '1', LANE_ENV: 'HOLD', ...env },
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream!.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  return { child, output: () => text }
}

async function exitOf({ child, output }: Running): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  assert.equal(child.exitCode, 0, output())
}

function image(folder: string) {
  const text = readFileSync(join(folder, 'Dockerfile'), 'utf8').replaceAll('\\\n', '')
  const rest = (name: string): string => new RegExp(`^${name} (.*)$`, 'm').exec(text)![1]!
  return {
    env: pairs(rest('ENV')),
    start: JSON.parse(rest('ENTRYPOINT')) as string[],
    healthcheck: JSON.parse(rest('HEALTHCHECK').replace(/^.*? CMD /, '')) as string[],
  }
}

interface Written {
  migrate: { args: string[]; env: Record<string, string> }
  worker: Record<string, string>
}

/** What the processes of each way are started with. */
const WAYS: Record<string, (folder: string) => Written> = {
  compose: (folder) => {
    const { services } = yaml.load(readFileSync(join(folder, 'deploy/compose.yaml'), 'utf8'))
    const { migrate } = services
    return { migrate: { args: migrate.command, env: migrate.environment }, worker: services['worker-1'].environment }
  },
}

for (const [kind, writtenOf] of Object.entries(WAYS)) {
  test(`${kind}: its processes are rolled behind the written nginx, no order is refused and no event lost`, async (t) => {
    const postgres = await postgresServer(t)
    const redis = postgres && (await redisServer(t))
    if (redis === null || postgres === null) return
    const folder = await deployedApplication(t, ['compose'])
    const { env: imageEnv, start, healthcheck } = image(folder)
    const { migrate, worker } = writtenOf(folder)
    const here = { ...postgres.env, ...redis.env, ...SECRET, HTTP_HOST: '127.0.0.1', HISTORY_ENABLED: 'false' }
    const allowed = { HTTP_ALLOWED_HOSTS: `${NAME}.example.com,127.0.0.1,localhost` }

    await exitOf(run(t, folder, [...start, ...migrate.args], { ...imageEnv, ...migrate.env, ...here, REPLICA_ID: 'm' }))
    const ports = { 'worker-1': await freePort(), 'worker-2': await freePort() }
    const startWorker = async (name: keyof typeof ports): Promise<Running> => {
      const own = { HTTP_PORT: String(ports[name]), SYSTEM_PORT: String(await freePort()), REPLICA_ID: name }
      const env = { ...imageEnv, ...worker, ...here, ...allowed, ...own }
      const running = run(t, folder, start, env)
      const isHealthy = async (): Promise<boolean> => {
        assert.equal(running.child.exitCode, null, running.output())
        const check = run(t, folder, healthcheck, env)
        return (await once(check.child, 'exit'))[0] === 0
      }
      await until(isHealthy, `${name} is healthy`, START_MS)
      return running
    }
    const workers = { 'worker-1': await startWorker('worker-1'), 'worker-2': await startWorker('worker-2') }
    const { caFile, issue } = await authority(temporaryFolder(t), 'proxy')
    const configuration = readFileSync(join(folder, `deploy/nginx/${NAME}.conf`), 'utf8')
    const nginx = await startProxy(t, configuration, ports, await issue('nginx', `DNS:${NAME}.example.com`))
    if (nginx === null) return
    const agent = new Agent({ ca: readFileSync(caFile), servername: `${NAME}.example.com`, keepAlive: true })
    t.after(() => agent.destroy())
    const orders = startOrders(nginx.ports[1]!, { agent, host: `${NAME}.example.com` })
    t.after(() => orders.stop())
    for (const name of ['worker-1', 'worker-2'] as const) {
      await moreOrders(orders)
      workers[name].child.kill('SIGTERM')
      await exitOf(workers[name])
      workers[name] = await startWorker(name)
    }
    await moreOrders(orders)
    await orders.stop()
    assert.deepEqual(orders.refused, [])
    await allHandled(orders, rowsOfServer(t, postgres))
    t.diagnostic(`${orders.taken.length} orders`)
    for (const each of Object.values(workers)) {
      each.child.kill('SIGTERM')
      await exitOf(each)
    }
  })
}

/** A probe of a pod, as the kubelet asks it. */
async function answers({ httpGet, timeoutSeconds = 1 }: Manifest, port: number): Promise<boolean> {
  const headers = Object.fromEntries(httpGet.httpHeaders.map(({ name, value }: Manifest) => [name, value]))
  const options = { host: '127.0.0.1', port, path: httpGet.path, headers, agent: false, timeout: timeoutSeconds * 1000 }
  const sent = get(options)
  sent.on('timeout', () => sent.destroy(new Error('The probe has no answer in time')))
  return once(sent, 'response').then(
    ([{ statusCode }]) => {
      sent.destroy()
      return statusCode >= 200 && statusCode < 400
    },
    () => false,
  )
}

/** A Service: gives each connection to the next of its endpoints. */
async function service(t: TestContext, endpoints: readonly number[]): Promise<number> {
  let turn = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const pod = connect(endpoints[turn++ % endpoints.length]!, '127.0.0.1')
    for (const [from, to] of [
      [client, pod],
      [pod, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy()).pipe(to)
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

test('k8s: its pods are rolled behind the Service, no order is refused and no event lost', async (t) => {
  const postgres = await postgresServer(t)
  const redis = postgres && (await redisServer(t))
  if (redis === null || postgres === null) return
  const folder = await deployedApplication(t, ['k8s'])
  const { env: imageEnv, start } = image(folder)
  const objects = (file: string): Manifest[] =>
    yaml.loadAll(readFileSync(join(folder, 'deploy/kubernetes', file), 'utf8'))
  const config = objects('config.yaml').find(({ kind }) => kind === 'ConfigMap')
  const podOf = (object: Manifest): Manifest => object.spec.template.spec
  const jobs = objects('migrate.yaml').find(({ kind }) => kind === 'Job')
  const workers = objects('worker.yaml').find(({ kind }) => kind === 'Deployment')
  const { maxSurge, maxUnavailable } = workers.spec.strategy.rollingUpdate
  assert.deepEqual([workers.spec.replicas, maxSurge, maxUnavailable], [2, 1, 0])

  const runPod = (pod: Manifest, name: string, port: number): Running => {
    const { command = start, args = [], env = [] } = pod.containers[0]
    const own = Object.fromEntries(env.map((each: Manifest) => [each.name, each.value ?? name]))
    const here = { ...postgres.env, ...redis.env, ...SECRET, HTTP_HOST: '127.0.0.1', HTTP_PORT: String(port) }
    const allowed = { HTTP_ALLOWED_HOSTS: `${config.data.HTTP_ALLOWED_HOSTS},127.0.0.1` }
    const files = { HISTORY_PATH: join(temporaryFolder(t), 'history.db'), SYSTEM_PORT: '0', LANES: '1' }
    return run(t, folder, [...command, ...args], { ...imageEnv, ...config.data, ...own, ...here, ...allowed, ...files })
  }
  await exitOf(runPod(podOf(jobs), 'migrate', await freePort()))

  const endpoints: number[] = []
  const startPod = async (name: string) => {
    const port = await freePort()
    const pod = runPod(podOf(workers), name, port)
    const { startupProbe, livenessProbe, readinessProbe } = podOf(workers).containers[0]
    for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
      const isAlive = async (): Promise<boolean> => {
        assert.equal(pod.child.exitCode, null, pod.output())
        return answers(probe, port)
      }
      await until(isAlive, `${name} answers ${probe.httpGet.path}`, START_MS)
    }
    endpoints.push(port)
    return { ...pod, port }
  }
  const pods = [await startPod('worker-a'), await startPod('worker-b')]
  const orders = startOrders(await service(t, endpoints))
  t.after(() => orders.stop())
  for (const name of ['worker-c', 'worker-d']) {
    await moreOrders(orders)
    pods.push(await startPod(name))
    const old = pods.shift()!
    // Both at a time: the endpoint goes a little later than the signal comes.
    old.child.kill('SIGTERM')
    await moreOrders(orders, 4)
    endpoints.splice(endpoints.indexOf(old.port), 1)
    await exitOf(old)
  }
  await moreOrders(orders)
  await orders.stop()
  assert.deepEqual(orders.refused, [])
  await allHandled(orders, rowsOfServer(t, postgres))
  t.diagnostic(`${orders.taken.length} orders`)
  for (const { child } of pods) child.kill('SIGTERM')
  await Promise.all(pods.map(exitOf))
})

test('systemd: the written unit reloads on SQLite, no order is refused and no event lost', async (t) => {
  const folder = await deployedApplication(t, ['systemd'])
  const unit = readFileSync(join(folder, `deploy/${NAME}.service`), 'utf8')
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)![1]!
  const port = await freePort()
  const path = join(temporaryFolder(t), 'service.db')
  const own = { HTTP_PORT: String(port), SYSTEM_PORT: '0', SQLITE_PATH: path }
  const service = run(t, folder, value('ExecStart').split(' '), { ...pairs(value('Environment')), ...SECRET, ...own })
  await until(() => service.output().includes('Serving on'), 'it serves', START_MS)
  const orders = startOrders(port)
  t.after(() => orders.stop())
  await moreOrders(orders)
  const signal = /^\/bin\/kill -(\w+) \$MAINPID$/.exec(value('ExecReload'))![1]
  service.child.kill(`SIG${signal}` as NodeJS.Signals)
  await until(() => service.output().includes('Reloaded in'), 'it reloads', START_MS)
  await moreOrders(orders)
  await orders.stop()
  assert.deepEqual(orders.refused, [])
  await allHandled(orders, rowsOfFile(path))
  service.child.kill(value('KillSignal') as NodeJS.Signals)
  await exitOf(service)
})
