import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { LaneInfo } from '../../../src/contracts/registry.ts'
import { freePort } from '../../support/port.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const DOMAINS = [fileURLToPath(new URL('../../fixtures/pool', import.meta.url)), SHIPPED]
/** A process or a lane starts within this, also on a machine that is busy, milliseconds. */
const START_MS = 60_000
const THREADS = Math.max(16, 4 * availableParallelism())

/** The service as the command of `npm start` starts it, loader included, with a file that nobody writes to. */
async function npmStart(t: TestContext, env: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-pool-'))
  const fifo = join(folder, 'fifo')
  execFileSync('mkfifo', [fifo])
  mkdirSync(join(folder, 'files'))
  const port = await freePort()
  const { start } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts
  const child = spawn('sh', ['-c', start], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      TMPDIR: process.env.TMPDIR,
      HTTP_PORT: String(port),
      LANES: '2',
      LOG_FORMAT: 'json',
      SQLITE_PATH: join(folder, 'service.db'),
      FILES_DIR: join(folder, 'files'),
      DOMAINS_DIR: DOMAINS.join(delimiter),
      POOL_STALL_MS: '800',
      // With `full` a write waits for the disk, in the pool.
      SQLITE_SYNCHRONOUS: 'normal',
      // The process that is started is the service itself.
      GUARDIAN: 'false',
      ...env,
    },
  })
  t.after(() => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  let log = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    log += chunk
  })
  await until(() => log.includes('Serving on '), 'the start', START_MS)
  const get = (path: string, withinMs = 20_000) =>
    fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(withinMs) })
  const lanes = async (): Promise<LaneInfo[]> => (await (await get('/system/lanes')).json()) as LaneInfo[]
  return {
    child,
    get,
    lanes,
    log: () => log,
    post: async (path: string, body: object) => {
      const headers = { 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify(body), signal: AbortSignal.timeout(30_000) }
      return (await fetch(`http://127.0.0.1:${port}${path}`, init)).status
    },
    hold: (count: number) => get(`/hold-pool-and-go?count=${count}&fifo=${fifo}`),
    /** Lets all reads end. */
    release: async () => (await open(fifo, 'w')).close(),
    readiness: async () => {
      const response = await get('/system/health/ready')
      return { status: response.status, text: await response.text() }
    },
  }
}

/**
 * On a busy machine lanes may be too slow for the primary to give them work: it says so, and the client comes again. And what has ended
 * two lanes waits for the probation lane, which has to start.
 */
async function unrefused(ask: () => Promise<number>): Promise<number> {
  const answered = async () => {
    const status = await ask()
    return status === 503 ? undefined : status
  }
  return await until(answered, 'an answer that is no refusal', START_MS)
}

test('npm start has a thread pool that some blocked calls do not fill; when it is held, it says so and by whom', async (t) => {
  const service = await npmStart(t)
  assert.doesNotMatch(service.log(), /UV_THREADPOOL_SIZE/)
  assert.equal((await service.hold(THREADS - 1)).status, 202)
  assert.equal((await service.get('/files/page.txt')).status, 200, 'one thread is left')
  assert.equal((await service.readiness()).status, 200)

  await service.hold(1)
  const held = await until(async () => {
    const readiness = await service.readiness()
    return readiness.status === 503 ? readiness : undefined
  }, 'not ready')
  assert.match(
    held.text,
    new RegExp(`the thread pool .* by held\\.HoldPool \\(GET /hold-pool-and-go, ${THREADS} calls\\)"`),
  )
  await until(() => /Not ready: the thread pool/.test(service.log()), 'the log line')
  assert.equal((await service.get('/hello')).status, 200, 'what needs no pool is served')
  await assert.rejects(service.get('/files/page.txt', 300), { name: 'TimeoutError' })
  const ada = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }
  assert.equal(await service.post('/users', ada), 201, 'passwords are hashed elsewhere')

  // Both lanes, one after the other: the one whose thread waits for the file, too.
  for (let death = 1; death <= 2; death++) {
    assert.equal(await unrefused(async () => (await service.get('/die')).status), 500)
    // There may be more: the probation lane, and the relief of one that stands still.
    const areUp = async () =>
      (await service.lanes()).filter(({ role, state }) => role === 'regular' && state === 'ready').length === 2
    await until(areUp, `a lane after death ${death}`, START_MS)
  }

  await service.release()
  await until(async () => (await service.readiness()).status === 200, 'ready again')
  assert.match(service.log(), /The thread pool serves again/)
  assert.equal(await unrefused(async () => (await service.get('/files/page.txt')).status), 200)
  assert.equal(await unrefused(() => service.post('/login', ada)), 200)
  service.child.kill('SIGTERM')
  await until(() => service.child.exitCode === 0, 'the end')
})
