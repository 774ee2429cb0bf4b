// How long a job of another tenant waits in graphile-worker, behind a queue of one tenant.
import { setTimeout as sleep } from 'node:timers/promises'
import { Logger, run as startWorker } from 'graphile-worker'
import pg from 'pg'
import { STORED_PAYLOAD } from '../domains/bench/tick-count.ts'
import type { DbAccess } from '../elastic/db.ts'
import type { MeasureTurns } from '../peers/bullmq/plan.ts'
import { Begins, probe } from '../work/probes.ts'

const POOL = 20
const SPECS_AT_ONCE = 10_000
/** A job of the large tenant: task, payload, queue. */
const FILL = `SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
  SELECT ROW('turn', $1::json, 'large', NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec FROM generate_series(1, $2::int)))`

const measureTurns: MeasureTurns<DbAccess> = async ({ access, behind, probes, atATime, turnMs }) => {
  const pool = new pg.Pool({ ...access, max: POOL })
  pool.on('error', () => {})
  const begins = new Begins()
  const runner = await startWorker({
    pgPool: pool,
    concurrency: atATime,
    noHandleSignals: true,
    logger: new Logger(() => () => {}),
    taskList: {
      turn: (payload) => {
        begins.has(String((payload as { probe?: string }).probe))
        return sleep(turnMs)
      },
    },
  })
  let last = 0
  const begin = async (): Promise<void> => {
    const id = String(++last)
    const hasBegun = begins.of(id)
    await runner.addJob('turn', { probe: id }, { queueName: 'other', priority: -1 })
    await hasBegun
  }
  await probe(probes, begin)
  const alone = await probe(probes, begin)
  for (let added = 0; added < behind; added += SPECS_AT_ONCE)
    await pool.query(FILL, [JSON.stringify(STORED_PAYLOAD), Math.min(SPECS_AT_ONCE, behind - added)])
  await sleep(1000)
  const turns = { alone, behind: await probe(probes, begin) }
  await runner.stop()
  await pool.end()
  return turns
}
export default measureTurns
