// A process that is told to end serves what has begun, refuses the rest, and is gone.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { it, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { LINGER_QUIET_MS } from '../../../src/primary/http/listener.ts'
import { startHeddle } from '../../support/heddle.ts'
import { startLoad } from '../../support/load.ts'
import { freePort } from '../../support/port.ts'
import {
  ask,
  assertFailure,
  assertOurs,
  headerOf,
  jsonOf,
  RawConnection,
  readHead,
  requestText,
} from '../../support/raw-client.ts'
import { SERVING } from '../../support/shared-process.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

/** Far more than the kernel holds for a connection. */
const LONG_BYTES = 12 << 20

const UPLOAD = requestText('POST', '/w/echo', {}, JSON.stringify({ text: 'x'.repeat(1000) }))

/** Sends a request without the last 500 bytes of its body. While they are missing, a drain goes on serving for as long as it ever does. */
async function beginUpload(t: TestContext, port: number): Promise<RawConnection> {
  const upload = await RawConnection.open(port)
  t.after(() => upload.drop())
  await upload.send(UPLOAD.subarray(0, -500))
  // What the process has answered to a later connection shows that it has read this one.
  await ask(port, 'GET', '/w/echo')
  return upload
}

async function isRefused(port: number): Promise<boolean> {
  try {
    const connection = await RawConnection.open(port)
    connection.drop()
    return false
  } catch {
    return true
  }
}

it('drains: serves what comes on open connections and closes them, then refuses, finishes what it has, ends with code 0', async (t) => {
  const heddle = await startHeddle(t, {
    domains: [SERVING, SYSTEM_ROUTES],
    lanes: 1,
    // Requests are served for 30 % of it at most, and waited for for another 60 %.
    env: { SHUTDOWN_TIMEOUT_MS: '8000', HTTP_HANDLER_TIMEOUT_MS: '5000' },
  })
  const upload = await beginUpload(t, heddle.port)
  const idle = await Promise.all(Array.from({ length: 400 }, () => RawConnection.open(heddle.port)))
  t.after(() => {
    for (const connection of idle) connection.drop()
  })
  const busy = await RawConnection.open(heddle.port)
  await busy.send(requestText('GET', '/w/hang/drain'))
  await until(async () => jsonOf(await ask(heddle.port, 'GET', '/p/state/drain:started')).data === 1, 'it runs')
  const stopped = heddle.stop()
  // Answers close their connections from then on: before, their clients would come back here.
  await until(() => isRefused(heddle.port), 'the end of listening')

  const first = idle.pop()!
  await first.send(requestText('GET', '/w/echo'))
  const served = await first.response()
  assertOurs(served)
  assert.equal(served.status, 200)
  assert.equal(headerOf(served, 'connection')?.toLowerCase(), 'close')
  await first.closed(1_000)

  const second = idle.pop()!
  await second.send(requestText('GET', '/system/health/ready'))
  const readiness = await second.response()
  assertOurs(readiness)
  assert.equal(readiness.status, 503)
  assert.deepEqual(jsonOf(readiness).reasons, ['draining'])

  const refused = await until(async () => {
    const connection = idle.pop()
    assert.ok(connection, 'every connection was served')
    await connection.send(requestText('GET', '/w/echo'))
    const response = await connection.response()
    if (response?.status === 200) return null
    await connection.closed(1_000)
    return response
  }, 'the end of serving')
  upload.drop()
  assertFailure(refused, 503, 'The service is shutting down')
  assert.match(headerOf(refused, 'retry-after')!, /^\d+$/)

  const finished = await busy.response()
  assertFailure(finished, 504, 'The handler did not answer in time')
  assert.equal(headerOf(finished, 'connection')?.toLowerCase(), 'close')
  await busy.closed(1_000)
  assert.equal(await stopped, 0)
})

it('serves who has been quiet on an open connection while it waits for something else', async (t) => {
  const heddle = await startHeddle(t, { domains: [SERVING], lanes: 1, env: { HTTP_HANDLER_TIMEOUT_MS: '2500' } })
  const [busy, quiet] = await Promise.all([RawConnection.open(heddle.port), RawConnection.open(heddle.port)])
  await busy.send(requestText('GET', '/w/hang/quiet'))
  await until(async () => jsonOf(await ask(heddle.port, 'GET', '/p/state/quiet:started')).data === 1, 'it runs')
  const startedMs = performance.now()
  const stopped = heddle.stop()
  await setTimeout(4 * LINGER_QUIET_MS)
  await quiet.send(requestText('GET', '/w/echo'))
  const { status } = (await quiet.response())!
  // A machine without a free core may have been slower than a drain waits.
  assert.ok(status === 200 || performance.now() - startedMs > 2000, `${status}`)
  await busy.response()
  assert.equal(await stopped, 0)
})

it('answers every request that is sent while SIGTERM arrives, each connection closed by its last answer', async (t) => {
  const heddle = await startHeddle(t, { domains: [SERVING], lanes: 2 })
  const upload = await beginUpload(t, heddle.port)
  const load = startLoad({ port: heddle.port, path: '/w/echo', keepAlive: 48, everyMs: 10, stopsAtClose: true })
  t.after(() => load.stop())
  await until(() => load.answered > 500, 'a steady load')
  const stopped = heddle.stop()
  await until(() => load.closedByAnswer + load.failures.length === 48, 'the last answers')
  upload.drop()
  assert.equal(await stopped, 0)
  await load.stop()
  assert.deepEqual(load.failures, [])
})

it('waits for a body that is on its way when SIGTERM arrives', async (t) => {
  const heddle = await startHeddle(t, { domains: [SERVING], lanes: 1 })
  const upload = await beginUpload(t, heddle.port)
  const stopped = heddle.stop()
  await until(() => heddle.logs.some(({ msg }) => msg === 'SIGTERM: draining'), 'the drain')
  // Longer than a drain waits for a connection on which nothing is under way.
  await setTimeout(2 * LINGER_QUIET_MS)
  await upload.send(UPLOAD.subarray(-500))
  const response = await upload.response()
  assertOurs(response)
  assert.equal(response.status, 200)
  assert.equal(await stopped, 0)
})

it('sends a long answer to its end, also when its handler has ended before SIGTERM arrives, and says what it waits for', async (t) => {
  const heddle = await startHeddle(t, { domains: [SERVING], lanes: 1 })
  const clients = await Promise.all(
    ['/w', '/p'].map(async (prefix) => {
      const client = connect(heddle.port, '127.0.0.1')
      t.after(() => client.destroy())
      client.write(requestText('GET', `${prefix}/large/${LONG_BYTES}`))
      const head = await readHead(client)
      return { client, gotBytes: Buffer.byteLength(head.slice(head.indexOf('\r\n\r\n') + 4), 'latin1') }
    }),
  )
  const stopped = heddle.stop()
  const saysWhat = () => heddle.logs.some(({ msg }) => /^Draining waits for 2 answers that their clients/.test(msg))
  await until(() => saysWhat() || heddle.process.exitCode !== null, 'it waits, or has ended')
  const lengths = clients.map(async ({ client, gotBytes }) => {
    const rest = Buffer.concat(await client.toArray())
    return gotBytes + rest.byteLength
  })
  assert.deepEqual(await Promise.all(lengths), [LONG_BYTES, LONG_BYTES])
  assert.equal(await stopped, 0)
  assert.ok(saysWhat())
})

it('is not held up by clients that are connected and silent', async (t) => {
  const heddle = await startHeddle(t, { domains: [SERVING], lanes: 1, env: { SHUTDOWN_TIMEOUT_MS: '20000' } })
  const silent = await Promise.all(Array.from({ length: 50 }, () => RawConnection.open(heddle.port)))
  await silent[0]!.send(requestText('GET', '/w/echo'))
  assertOurs(await silent[0]!.response())
  const startedMs = performance.now()
  assert.equal(await heddle.stop(), 0)
  assert.ok(performance.now() - startedMs < 3_000, `it took ${performance.now() - startedMs} ms`)
  for (const connection of silent) await connection.closed(1_000)
})

it('leaves its port to the next process at once, though a connection was open', async (t) => {
  const options = { domains: [SERVING, SYSTEM_ROUTES], lanes: 1, env: { HTTP_PORT: String(await freePort()) } }
  const first = await startHeddle(t, options)
  // The server closes it first: its end of the connection stays in TIME_WAIT.
  const stream = await first.fetch('/system/traces/stream')
  assert.equal(await first.stop(), 0)
  await stream.body?.cancel().catch(() => {})
  const second = await startHeddle(t, options)
  assert.equal((await ask(second.port, 'GET', '/w/echo')).status, 200)
})
