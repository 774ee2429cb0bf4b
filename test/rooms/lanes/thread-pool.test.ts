import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { fixtureDomains, SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { lanesOf } from './deadly.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const DOMAINS = [fixtureDomains('pool'), SHIPPED]
/** A process or a lane starts within this, also on a machine that is busy, milliseconds. */
const START_MS = 60_000
const THREADS = Math.max(16, 4 * availableParallelism())

/** The service as the command of `npm start` starts it, loader included, with a file that nobody writes to. */
async function npmStart(t: TestContext) {
  const folder = temporaryFolder(t)
  const fifo = join(folder, 'fifo')
  execFileSync('mkfifo', [fifo])
  mkdirSync(join(folder, 'files'))
  const { start } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts
  const heddle = await startHeddle(t, {
    command: ['sh', '-c', start],
    domains: DOMAINS,
    env: {
      NODE_ENV: 'production',
      FILES_DIR: join(folder, 'files'),
      POOL_STALL_MS: '800',
      // With `full` a write waits for the disk, in the pool.
      SQLITE_SYNCHRONOUS: 'normal',
      // The process that is started is the service itself.
      GUARDIAN: 'false',
    },
  })
  return {
    heddle,
    log: () => heddle.logs.map(({ msg }) => msg).join('\n'),
    get: (path: string, withinMs = 20_000) => heddle.fetch(path, { signal: AbortSignal.timeout(withinMs) }),
    hold: (count: number) => heddle.fetch(`/hold-pool-and-go?count=${count}&fifo=${fifo}`),
    /** Lets all reads end. */
    release: async () => (await open(fifo, 'w')).close(),
    readiness: () => heddle.json('/system/health/ready'),
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
  const { heddle } = service
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
    JSON.stringify(held.body),
    new RegExp(`the thread pool .* by held\\.HoldPool \\(GET /hold-pool-and-go, ${THREADS} calls\\)"`),
  )
  await until(() => /Not ready: the thread pool/.test(service.log()), 'the log line')
  assert.equal((await service.get('/hello')).status, 200, 'what needs no pool is served')
  await assert.rejects(service.get('/files/page.txt', 300), { name: 'TimeoutError' })
  const ada = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }
  assert.equal((await heddle.post('/users', ada)).status, 201, 'passwords are hashed elsewhere')

  // Both lanes, one after the other: the one whose thread waits for the file, too.
  for (let death = 1; death <= 2; death++) {
    assert.equal(await unrefused(async () => (await service.get('/die')).status), 500)
    // There may be more: the probation lane, and the relief of one that stands still.
    const areUp = async () =>
      (await lanesOf(heddle)).filter(({ role, state }) => role === 'regular' && state === 'ready').length === 2
    await until(areUp, `a lane after death ${death}`, START_MS)
  }

  await service.release()
  await until(async () => (await service.readiness()).status === 200, 'ready again')
  assert.match(service.log(), /The thread pool serves again/)
  assert.equal(await unrefused(async () => (await service.get('/files/page.txt')).status), 200)
  assert.equal(await unrefused(async () => (await heddle.post('/login', ada)).status), 200)
  assert.equal(await heddle.stop(), 0)
})
