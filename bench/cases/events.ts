import { alone, type BenchCase, type CaseContext, figureTo } from '../bench-case.ts'
import { inTurn } from '../comparison.ts'
import { TICK_EVENT } from '../domains/bench/tick-count.ts'
import { median } from '../report.ts'
import { askJson, type BenchServer, heddleSide } from '../server.ts'
import { lostIn, publishingThread, type TickRun, tickRun } from '../ticks.ts'

const EVENTS = 200_000
const WARMUP_EVENTS = 50_000

export const events: BenchCase = {
  name: 'events',
  title: 'Events published in one lane, handled in another, recorded in the trace',
  async run(context) {
    // In memory: `durable` measures those that are stored.
    const sides = heddleSide(context, 'heddle', 2, { EVENT_BUS_DRIVER: 'in_process' })
    const { heddle: [runs = []] = [] } = await inTurn(context, sides, (server) => measure(context, server), {
      rounds: 1,
    })
    const crossedShare = median(runs.map((run) => run.crossed / run.handled))
    return {
      rows: [
        alone({
          label: 'events: published in one lane, handled in another',
          unit: 'events/s',
          heddle: median(runs.map((run) => run.crossedPerSec)),
          target: figureTo('at least', 300_000, 'events/s'),
          faults: lostIn(runs),
          ...(crossedShare === null ? {} : { note: `${(crossedShare * 100).toFixed(1)} % crossed lanes` }),
        }),
      ],
      details: { runs },
    }
  },
}

async function measure({ rounds, say }: CaseContext, server: BenchServer): Promise<TickRun[]> {
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
