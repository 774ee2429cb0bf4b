import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fixtureDomains('pool'), SYSTEM_ROUTES]
const SHUTDOWN_TIMEOUT_MS = 500
/** Until a process that cannot drain has ended: two seconds to close everything, and a busy machine. */
const END_MAX_MS = 8000

const start = (t: TestContext, timeoutMs = SHUTDOWN_TIMEOUT_MS): Promise<Heddle> =>
  startHeddle(t, { domains: DOMAINS, lanes: 1, env: { SHUTDOWN_TIMEOUT_MS: String(timeoutMs) } })

/** How the process ends after signals, each when the one before is heard, and after how long. */
async function endOf({ process: child, logs }: Heddle, signals: NodeJS.Signals[]) {
  const exited = once(child, 'exit', { signal: AbortSignal.timeout(60_000) })
  const startedMs = performance.now()
  for (const [n, signal] of signals.entries()) {
    if (n > 0) await until(() => logs.some(({ msg }) => msg === 'SIGTERM: draining'), 'the drain')
    child.kill(signal)
  }
  const [code, signal] = (await exited) as [number | null, NodeJS.Signals | null]
  return { code, signal, tookMs: performance.now() - startedMs }
}

/** A request that is never answered. Its lane has begun with it: on a busy machine it may only have it. */
async function begin(heddle: Heddle, path: '/wait' | '/hold-thread' | `/hold-pool?${string}`): Promise<void> {
  heddle.fetch(path).catch(() => {})
  const isThere = async (): Promise<boolean> => {
    const [lane] = (await heddle.json('/system/lanes')).body
    return lane.requests_in_flight > 0 && (path !== '/hold-thread' || !lane.responsive)
  }
  await until(isThere, path)
}

test('SIGTERM ends a process whose lane is inside a native call, and says what it was', async (t) => {
  const heddle = await start(t)
  await begin(heddle, '/hold-thread')
  const { signal, tookMs } = await endOf(heddle, ['SIGTERM'])
  assert.equal(signal, 'SIGKILL')
  assert.ok(tookMs >= SHUTDOWN_TIMEOUT_MS && tookMs < END_MAX_MS, `${tookMs} ms`)
  const lines = heddle.logs.map(({ msg }) => msg)
  assert.ok(
    lines.some((msg) => /^Lane 0 was ended .*: GET \/hold-thread \(held\.HoldThread\)$/.test(msg)),
    lines.join('\n'),
  )
  assert.match(lines.at(-1)!, /inside native code/)
})

test('SIGTERM ends a process whose lane reads a file that never answers', async (t) => {
  const heddle = await start(t)
  const fifo = join(heddle.directory, 'fifo')
  execFileSync('mkfifo', [fifo])
  await begin(heddle, `/hold-pool?count=1&fifo=${fifo}`)
  const { signal, tookMs } = await endOf(heddle, ['SIGTERM'])
  assert.equal(signal, 'SIGKILL')
  assert.ok(tookMs < END_MAX_MS, `${tookMs} ms`)
})

test('SIGTERM waits for a handler that never answers until SHUTDOWN_TIMEOUT_MS, and ends in order', async (t) => {
  const heddle = await start(t)
  await begin(heddle, '/wait')
  const { code, tookMs } = await endOf(heddle, ['SIGTERM'])
  assert.equal(code, 0)
  assert.ok(tookMs >= SHUTDOWN_TIMEOUT_MS / 2 && tookMs < END_MAX_MS, `${tookMs} ms`)
})

test('with SHUTDOWN_DELAY_MS a process that is told to end is not ready, and goes on serving until it drains', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 1, env: { SHUTDOWN_DELAY_MS: '2000' } })
  assert.equal((await heddle.fetch('/system/health/ready')).status, 200)
  const ended = endOf(heddle, ['SIGTERM'])
  await until(async () => (await heddle.fetch('/system/health/ready')).status === 503, 'not ready')
  const answer = await heddle.fetch('/hello')
  assert.equal(answer.status, 200)
  assert.notEqual(answer.headers.get('connection'), 'close')
  const { code, tookMs } = await ended
  assert.equal(code, 0)
  assert.ok(tookMs >= 2000, `${tookMs} ms`)
  const lines = heddle.logs.map(({ msg }) => msg).filter((msg) => msg.startsWith('SIGTERM'))
  assert.deepEqual(lines, ['SIGTERM: not ready, serving for 2000 ms more', 'SIGTERM: draining'])
})

test('a second SIGTERM ends the process at once, inside a native call too', async (t) => {
  // Nothing else ends them for so long.
  const held = await start(t, 120_000)
  await begin(held, '/hold-thread')
  const hard = await endOf(held, ['SIGTERM', 'SIGINT'])
  assert.equal(hard.signal, 'SIGKILL')

  const free = await start(t, 120_000)
  await begin(free, '/wait')
  const soft = await endOf(free, ['SIGTERM', 'SIGINT'])
  assert.deepEqual([soft.code, soft.signal], [1, null])
  assert.ok(soft.tookMs < END_MAX_MS, `${soft.tookMs} ms`)
})
