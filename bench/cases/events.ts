import { alone, type BenchCase, figureTo } from '../bench-case.ts'
import { TICK_EVENT } from '../domains/bench/tick-count.ts'
import { median } from '../report.ts'
import { askJson, type BenchServer, startHeddle } from '../server.ts'
import { publishingThread, type TickRun, tickRun } from '../ticks.ts'

const EVENTS = 200_000
const WARMUP_EVENTS = 50_000

export const events: BenchCase = {
  name: 'events',
  title: 'Events published in one lane, handled in another, recorded in the trace',
  async run(context) {
    const runs = context.baselinesOnly ? [] : await measure(context.rounds, context.profileDir('heddle'), context.say)
    const crossedShare = median(runs.map((run) => run.crossed / run.handled))
    return {
      rows: [
        alone({
          label: 'events: published in one lane, handled in another',
          unit: 'events/s',
          heddle: median(runs.map((run) => run.crossedPerSec)),
          target: figureTo('at least', 300_000, 'events/s'),
          faults: runs
            .filter((run) => run.handled !== run.published)
            .map((run) => `${run.handled} handled of ${run.published} published`),
          ...(crossedShare === null ? {} : { note: `${(crossedShare * 100).toFixed(1)} % crossed lanes` }),
        }),
      ],
      details: { runs },
    }
  },
}

async function measure(
  rounds: number,
  profileDir: string | undefined,
  say: (text: string) => void,
): Promise<TickRun[]> {
  // In memory: `durable` measures those that are stored.
  const server = await startHeddle({ lanes: 2, env: { EVENT_BUS_DRIVER: 'in_process' }, profileDir })
  try {
    const thread = await publishingThread(server)
    await tickRun(server, { run: 'warm-up', thread, count: WARMUP_EVENTS })
    const runs: TickRun[] = []
    for (let round = 1; round <= rounds; round++) {
      const run = await tickRun(server, { run: `round-${round}`, thread, count: EVENTS })
      say(
        `round ${round} ${Math.round(run.perSec)} events/s, ${run.crossed} of ${run.handled} crossed lanes, ${run.refused} refusals`,
      )
      runs.push(run)
    }
    await verifyTrace(server, WARMUP_EVENTS + rounds * EVENTS)
    return runs
  } finally {
    await server.stop()
  }
}

/** Checks that every event was recorded: the topology has counted it, and the last records can be read. */
async function verifyTrace(server: BenchServer, published: number): Promise<void> {
  type Topology = Record<string, { fire_count: number }>
  const { topology } = await askJson<{ topology: Topology }>(server, '/system/events')
  const fired = topology[TICK_EVENT]?.fire_count
  if (fired !== published) throw new Error(`/system/events counts ${fired} ${TICK_EVENT}, ${published} were published`)
  const records = await askJson<{ event: string }[]>(server, '/system/traces/flat')
  const ticks = records.filter((record) => record.event === TICK_EVENT).length
  if (ticks === 0) throw new Error(`/system/traces/flat shows no ${TICK_EVENT}`)
}
