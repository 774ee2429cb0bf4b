import { readFileSync } from 'node:fs'
import { run } from 'node:test'
import type { TestEvent } from 'node:test/reporters'
import type { Job } from './jobs.ts'
import type { Report } from './report.ts'

/** Milliseconds in the unit of time that Linux tells processor time in. */
const TICK_MS = 10
/** A process that has not ended by then has failed: far longer than any file takes on a busy machine. */
const PROCESS_TIMEOUT_MS = 600_000

/** Runs all jobs, those that bear company first, `concurrency` at a time. Resolves when the last has ended. */
export async function runJobs(jobs: readonly Job[], concurrency: number, report: Report, signal: AbortSignal) {
  const meter = new ChildMeter()
  const runAll = async (queue: Job[]): Promise<void> => {
    for (let job = queue.shift(); job !== undefined && !signal.aborted; job = queue.shift()) {
      report.add(await runJob(job, meter, signal))
    }
  }
  const together = jobs.filter(({ kind }) => kind !== 'alone')
  await Promise.all(Array.from({ length: concurrency }, () => runAll(together)))
  await runAll(jobs.filter(({ kind }) => kind === 'alone'))
}

async function runJob(job: Job, meter: ChildMeter, signal: AbortSignal) {
  const startedMs = performance.now()
  const events: TestEvent[] = []
  for await (const event of run({ files: [job.entry], concurrency: 1, timeout: PROCESS_TIMEOUT_MS, signal }))
    events.push(event as TestEvent)
  return { job, events, wallMs: performance.now() - startedMs, cpuMs: meter.read() }
}

/**
 * Processor time of the processes that this one has started and that have ended, with all of theirs.
 * Read at the end of each, it tells the time of that one: two hardly ever end between two readings.
 */
class ChildMeter {
  #lastMs: number | null = this.#total()

  /** Since the last reading; null where the system does not tell. */
  read(): number | null {
    const nowMs = this.#total()
    const spentMs = nowMs === null || this.#lastMs === null ? null : nowMs - this.#lastMs
    this.#lastMs = nowMs
    return spentMs
  }

  #total(): number | null {
    try {
      const stat = readFileSync('/proc/self/stat', 'latin1')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return (Number(fields[13]) + Number(fields[14])) * TICK_MS
    } catch {
      return null
    }
  }
}
