// How long a job of higher priority waits in pg-boss.
import { setTimeout as sleep } from 'node:timers/promises'
import PgBoss from 'pg-boss'
import { STORED_PAYLOAD } from '../domains/bench/tick-count.ts'
import type { DbAccess } from '../elastic/db.ts'
import type { MeasureTurns } from '../peers/bullmq/plan.ts'
import { Begins, probe } from '../work/probes.ts'

const QUEUE = 'turn'
const POOL = 20
const JOBS_AT_ONCE = 10_000

const measureTurns: MeasureTurns<DbAccess> = async ({ access, behind, probes, atATime, turnMs }) => {
  const boss = new PgBoss({ ...access, max: POOL })
  boss.on('error', () => {})
  await boss.start()
  await boss.createQueue(QUEUE)
  const begins = new Begins()
  // Half a second is its shortest pause between two looks.
  for (let n = 0; n < atATime; n++)
    await boss.work(QUEUE, { pollingIntervalSeconds: 0.5, batchSize: 1 }, async (jobs: PgBoss.Job<unknown>[]) => {
      for (const { data } of jobs) begins.has(String((data as { probe?: string }).probe))
      await sleep(turnMs)
    })
  let last = 0
  const begin = async (): Promise<void> => {
    const id = String(++last)
    const hasBegun = begins.of(id)
    await boss.send(QUEUE, { probe: id }, { priority: 1 })
    await hasBegun
  }
  const alone = await probe(probes, begin)
  for (let added = 0; added < behind; added += JOBS_AT_ONCE) {
    const length = Math.min(JOBS_AT_ONCE, behind - added)
    await boss.insert(Array.from({ length }, () => ({ name: QUEUE, data: STORED_PAYLOAD })))
  }
  await sleep(1000)
  const turns = { alone, behind: await probe(probes, begin) }
  await boss.stop({ graceful: false, wait: true })
  return turns
}
export default measureTurns
