import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, spawnHeddle } from '../../support/heddle.ts'
import { startLoad } from '../../support/load.ts'
import { freePort, freePorts } from '../../support/port.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'
import { isRunning, startGuarded } from './guarded.ts'

const FLEET = fileURLToPath(new URL('../../fixtures/started/deployed', import.meta.url))
const TWO = { PROCESSES: '2', AUTH_SECRET_KEY: 'x'.repeat(32) }
const IN_PROCESS = { ...TWO, EVENT_BUS_DRIVER: 'in_process' }
/** With each request on a connection of its own, both of two processes answer one within so many, as good as surely. */
const TRIES = 60
const START_MS = 60_000

interface Place {
  number: number
  of: number
  replica: string
  pid: number
}

/** The process that answers a request on a new connection. */
function place(port: number): Promise<Place> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/system/status', agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve(JSON.parse(text).process))
    })
      .on('error', reject)
      .end()
  })
}

/** Those that answer, by number. */
async function places(port: number): Promise<Record<number, Place>> {
  const found: Record<number, Place> = {}
  for (let n = 0; n < TRIES && Object.keys(found).length < 2; n++) {
    const one = await place(port)
    found[one.number] = one
  }
  return found
}

const bothAt = (port: number): Promise<Record<number, Place>> =>
  until(
    async () => {
      const found = await places(port)
      return Object.keys(found).length === 2 ? found : null
    },
    'both processes answer',
    START_MS,
  )

const served = (heddle: Heddle): number => heddle.logs.filter(({ msg }) => msg.startsWith('Serving on')).length

test('two processes on one port', async (t) => {
  const heddle = await startGuarded(t, IN_PROCESS)
  const { port } = heddle
  const ready = new Promise((resolve) =>
    heddle.process.on('message', (message) => message === 'ready' && resolve(null)),
  )

  await t.test(
    'both answer, each under its own name, and who has started the guardian is told when both do',
    async () => {
      await ready
      assert.equal(served(heddle), 2)
      const warnings = heddle.logs.filter(({ msg }) => msg.startsWith('PROCESSES is 2'))
      for (const what of [/state of its own/, /`tx\.publish` fails/, /its own events alone/, /SYSTEM_PORT/])
        assert.equal(warnings.filter(({ msg }) => what.test(msg)).length, 1, `${what} is said once`)
      const both = await bothAt(port)
      const [first, second] = [both[0]!, both[1]!]
      assert.notEqual(first.pid, second.pid)
      assert.match(first.replica, new RegExp(`:${port}:0$`))
      assert.match(second.replica, new RegExp(`:${port}:1$`))
      assert.equal(second.of, 2)
      assert.ok(
        heddle.logs.some(({ replica }) => replica === second.replica),
        'the log says which process writes',
      )
    },
  )

  await t.test('one that is killed comes back while the other answers', async () => {
    for (const number of [1, 0]) {
      const { [number]: killed, [1 - number]: other } = await bothAt(port)
      process.kill(killed!.pid, 'SIGKILL')
      await until(() => !isRunning(killed!.pid), 'it is dead')
      const alone = await place(port)
      assert.equal(alone.pid, other!.pid)
      const again = await bothAt(port)
      assert.notEqual(again[number]!.pid, killed!.pid)
      assert.equal(again[1 - number]!.pid, other!.pid)
      const told = ({ msg, replica }: (typeof heddle.logs)[0]): boolean =>
        msg.startsWith('The process before this one') && replica === killed!.replica
      await until(() => heddle.logs.some(told), 'its successor tells of it')
    }
    assert.equal(heddle.logs.filter(({ msg }) => msg.startsWith('The process before this one')).length, 2)
    assert.match(heddle.errors.join(''), /process 1 died of SIGKILL: it is started again/)
  })

  await t.test('SIGHUP reloads both, one after the other', async () => {
    heddle.process.kill('SIGHUP')
    const steps = () =>
      heddle.logs
        .filter(({ msg }) => /^(?:SIGHUP: reloading|Reloaded in)/.test(msg))
        .map(({ msg, replica }) => `${String(replica).at(-1)} ${msg.split(' ')[0]}`)
    await until(() => steps().length === 4, 'both have reloaded', START_MS)
    assert.deepEqual(steps(), ['0 SIGHUP:', '0 Reloaded', '1 SIGHUP:', '1 Reloaded'])
  })

  await t.test('one that is told to end drains and is replaced, and no request that was taken fails', async (step) => {
    const load = startLoad({ port, path: '/pid', keepAlive: 8, everyMs: 30 })
    step.after(() => load.stop())
    for (const number of [0, 1]) {
      const { [number]: told, [1 - number]: other } = await bothAt(port)
      process.kill(told!.pid, 'SIGTERM')
      await until(() => !isRunning(told!.pid), 'it has ended', START_MS)
      const both = await bothAt(port)
      assert.notEqual(both[number]!.pid, told!.pid)
      assert.equal(both[1 - number]!.pid, other!.pid)
    }
    await load.stop()
    assert.ok(load.answered > 0)
    // A connection in the accept queue at the very moment when its listener closes is reset by a kernel whose tcp_migrate_req is 0.
    const { failures } = load
    assert.ok(failures.length <= 4 && failures.every((failure) => failure.includes('ECONNRESET')), failures.join('\n'))
    assert.match(heddle.errors.join(''), /process 1 has ended with code 0: it is started again/)
  })

  await t.test('a second service on the port is refused', async (step) => {
    const { child, errors } = await spawnHeddle(step, {
      isGuarded: true,
      lanes: 1,
      env: { ...IN_PROCESS, HTTP_PORT: String(port) },
    })
    assert.equal((await once(child, 'exit'))[0], 1)
    assert.match(errors.join(''), /the port is taken by/)
  })

  await t.test('SIGTERM drains both', async () => {
    const both = await bothAt(port)
    const answers: Promise<unknown>[] = []
    const draining = (): number => heddle.logs.filter(({ msg }) => msg === 'SIGTERM: draining').length
    const before = draining()
    for (let n = 0; n < 20; n++)
      answers.push(
        new Promise((resolve, reject) => {
          request({ host: '127.0.0.1', port, path: '/wait?ms=1500', agent: false }, (response) => {
            response.resume()
            response.on('end', () => resolve(response.statusCode))
          })
            .on('error', reject)
            .end()
        }),
      )
    await until(async () => (await heddle.json('/waiting')).body.waiting > 0, 'requests in flight')
    // Every connection is accepted by now, or within the turn that answers this.
    await bothAt(port)
    const exited = once(heddle.process, 'exit')
    heddle.process.kill('SIGTERM')
    assert.deepEqual(new Set(await Promise.all(answers)), new Set([200]))
    assert.equal((await exited)[0], 0)
    assert.equal(draining() - before, 2)
    for (const { pid } of Object.values(both)) assert.equal(isRunning(pid), false)
  })
})

test('on PostgreSQL with the database driver both serve, the first alone runs the jobs, and each has a port for /system', async (t) => {
  const postgres = await postgresServer(t)
  if (postgres === null) return
  const systemPort = await freePorts(2)
  const TOOLS_DIR = await toolsDirWith(t, 'postgres')
  const heddle = await startGuarded(
    t,
    { ...TWO, ...postgres.env, TOOLS_DIR, SYSTEM_PORT: String(systemPort), SCHEDULER_ENABLED: 'true' },
    [FLEET],
  )
  await until(() => served(heddle) === 2, 'both serve', START_MS)
  const ticks = (): LogLines => heddle.logs.filter(({ msg }) => msg === 'tick')
  await until(() => ticks().length > 20, 'the job')
  assert.deepEqual(new Set(ticks().map(({ replica }) => String(replica).at(-1))), new Set(['0']))
  assert.equal((await place(systemPort)).number, 0)
  assert.equal((await place(systemPort + 1)).number, 1)
  assert.equal(await heddle.stop(), 0)
})

type LogLines = Heddle['logs']

test('SQLite with the database driver is refused before anything is served, with what to do instead', async (t) => {
  const env = { ...TWO, HTTP_PORT: String(await freePort()) }
  const { child, errors, logs } = await spawnHeddle(t, { isGuarded: true, lanes: 1, env })
  assert.equal((await once(child, 'exit'))[0], 78)
  assert.match(errors.join(''), /PROCESSES is 2, and SQLite keeps the events of one process: use PostgreSQL/)
  assert.doesNotMatch(errors.join(''), /started again/)
  assert.ok(!logs.some(({ msg }) => msg.startsWith('Serving')))
})

test('without the guardian, which alone starts several, PROCESSES is refused', async (t) => {
  const env = { ...IN_PROCESS, HTTP_PORT: String(await freePort()) }
  const { child, errors } = await spawnHeddle(t, { lanes: 1, env })
  assert.equal((await once(child, 'exit'))[0], 78)
  assert.match(errors.join(''), /PROCESSES: expected 1 without the guardian/)
})

test('node:http shares the port, too', async (t) => {
  const env = { ...IN_PROCESS, HTTP_LISTENER: 'node', HTTP_PORT: String(await freePort()) }
  const heddle = await startGuarded(t, env)
  await bothAt(heddle.port)
  assert.equal(await heddle.stop(), 0)
})
