import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { RawConnection, requestText } from '../../support/raw-client.ts'
import { SERVING } from '../../support/shared-process.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { openWebSocket } from '../../support/web-socket.ts'

const LIMIT = 256
const FEW_DESCRIPTORS = fileURLToPath(new URL('../../support/few-descriptors.cjs', import.meta.url))
const SOCKETS = fileURLToPath(new URL('../sockets/domains', import.meta.url))
const PAUSED = 'connections are open'
const MEASURED_MS = 1_000

/** Seconds of processor time of a process so far. Source: proc(5). */
function cpuSec(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

function hasPrlimit(): boolean {
  try {
    execFileSync('prlimit', ['--version'])
    return true
  } catch {
    return false
  }
}

async function statusOf(connection: RawConnection, path = '/w/echo'): Promise<number | undefined> {
  await connection.send(requestText('GET', path))
  return (await connection.response())?.status
}

/** Opens connections until one is refused, or as many as there are descriptors. */
async function crowdOf(t: TestContext, port: number): Promise<{ sockets: Socket[]; refused: () => number }> {
  const sockets: Socket[] = []
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  let refused = 0
  // One address alone gets half of them. Those that wait to be accepted may count twice.
  for (let n = 0; n < LIMIT; n++) {
    const options = { port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (n % 8)}` }
    const socket = connect(options)
    // By a reset, or by an end.
    socket.on('error', () => {}).on('close', () => void refused++)
    sockets.push(socket)
  }
  await until(() => sockets.every(({ connecting }) => !connecting), 'each is connected or refused')
  return { sockets, refused: () => refused }
}

test('at the limit of descriptors new connections are refused, those that are open are served, and no core is busy', {
  skip: hasPrlimit() ? false : 'no prlimit of util-linux here',
}, async (t) => {
  const env = { NODE_OPTIONS: `--require=${FEW_DESCRIPTORS}`, TEST_DESCRIPTORS: String(LIMIT) }
  const {
    port,
    process: child,
    logs,
  } = await startHeddle(t, { domains: [SERVING, SOCKETS, SYSTEM_ROUTES], lanes: 1, env })
  const first = await RawConnection.open(port)
  t.after(() => first.drop())
  assert.equal(await statusOf(first), 200)

  const connections = async (): Promise<number> => {
    await first.send(requestText('GET', '/system/metrics/prometheus'))
    const text = (await first.response())!.body.toString()
    return Number(/^heddle_http_connections\{\} (\d+)$/m.exec(text)![1])
  }
  const client = await openWebSocket(port, '/talk/a')
  assert.equal(await connections(), 2)
  await client.close()
  await until(async () => (await connections()) === 1, 'a WebSocket that is gone does not count')

  const { sockets, refused } = await crowdOf(t, port)
  const [fromSec, fromMs] = [cpuSec(child.pid!), performance.now()]
  let slowestMs = 0
  while (performance.now() - fromMs < MEASURED_MS) {
    const askedMs = performance.now()
    assert.equal(await statusOf(first), 200)
    slowestMs = Math.max(slowestMs, performance.now() - askedMs)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const share = (cpuSec(child.pid!) - fromSec) / ((performance.now() - fromMs) / 1000)
  t.diagnostic(
    `${Math.round(share * 100)} % of a core, slowest answer ${Math.round(slowestMs)} ms, ${refused()} refused`,
  )
  assert.ok(share < 0.5, `${Math.round(share * 100)} % of a core`)
  await until(() => refused() > 0, 'some are refused')
  assert.equal(logs.filter(({ msg }) => msg.includes(PAUSED) && msg.includes(`ulimit -n is ${LIMIT}`)).length, 1)
  assert.equal(await statusOf(first, '/system/health/ready'), 503)

  for (const socket of sockets) socket.destroy()
  await until(async () => {
    const late = await RawConnection.open(port).catch(() => null)
    const status = late === null ? undefined : await statusOf(late)
    late?.drop()
    return status === 200
  }, 'new connections are taken again')
  assert.equal(await statusOf(first, '/system/health/ready'), 200)
})
