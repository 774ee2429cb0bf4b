import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { test } from 'node:test'
import { isRunning, startGuarded } from '../rooms/guardian/guarded.ts'
import { bothAt, place, START_MS, served, TWO } from '../rooms/guardian/places.ts'
import { spawnHeddle } from '../support/heddle.ts'
import { startLoad } from '../support/load.ts'
import { postgresServer } from '../support/servers/postgres.ts'
import { until } from '../support/until.ts'

test('two processes on one port', async (t) => {
  const postgres = await postgresServer(t)
  if (postgres === null) return
  const env = { ...TWO, ...postgres.env, TOOLS: 'postgres', EVENT_BUS_DRIVER: 'in_process' }
  const heddle = await startGuarded(t, env)
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
      for (const what of [/state of its own/, /its own events alone/, /SYSTEM_PORT/])
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
    // Two streams: the one may be read later than the other.
    await until(
      () => /process 1 died of SIGKILL: it is started again/.test(heddle.errors.join('')),
      'the guardian tells',
    )
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
      env: { ...env, HTTP_PORT: String(port) },
    })
    assert.equal((await once(child, 'close'))[0], 1)
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
