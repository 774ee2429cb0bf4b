import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import { startHeddle } from '../../support/heddle.ts'
import { diskOf } from '../../support/power/disk.ts'

const DURABLE = fileURLToPath(new URL('../../fixtures/durable', import.meta.url))
const CLIENTS = 16
const ACKNOWLEDGED_WANTED = 400

/** Clients write until enough was acknowledged; then the power goes. @returns the acknowledged ids, and those that the disk still has */
async function cutUnderLoad(t: TestContext) {
  const work = await realpath(await mkdtemp(join(tmpdir(), 'heddle-power-')))
  t.after(() => rm(work, { recursive: true, force: true, maxRetries: 10 }))
  const data = join(work, 'data')
  await mkdir(data)
  const disk = await diskOf(data, work)
  const env = { ...disk.env, SQLITE_PATH: join(data, 'service.db'), SQLITE_SYNCHRONOUS: 'full' }
  const heddle = await startHeddle(t, { domains: [DURABLE], lanes: 2, env })

  const acknowledged: string[] = []
  const client = async (number: number): Promise<void> => {
    for (let n = 0; heddle.process.signalCode === null; n++) {
      const id = `${number}-${n}`
      const [path, ids] = n % 4 === 0 ? ['/pairs', [`${id}-a`, `${id}-b`]] : ['/rows', [id]]
      const answer = await heddle.post(path as string, { id }).catch(() => null)
      if (answer?.status !== 201) continue
      acknowledged.push(...(ids as string[]))
      if (acknowledged.length >= ACKNOWLEDGED_WANTED) heddle.process.kill('SIGKILL')
    }
  }
  const exited = once(heddle.process, 'exit')
  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)))
  await exited

  const left = new Database(join(disk.left, 'service.db'))
  t.after(() => left.close())
  assert.equal(left.pragma('integrity_check', { simple: true }), 'ok')
  const ids = new Set(left.prepare('SELECT id FROM rows_kept').pluck().all() as string[])
  return { acknowledged, lost: acknowledged.filter((id) => !ids.has(id)) }
}

// That the cut takes what is not synced is shown by `test/claims/power-cut.test.ts`.
test('a power cut takes no row that was acknowledged', async (t) => {
  const { acknowledged, lost } = await cutUnderLoad(t)
  assert.ok(acknowledged.length >= ACKNOWLEDGED_WANTED)
  assert.deepEqual(lost, [])
})
