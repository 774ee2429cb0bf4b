import { alone, type BenchCase, type CaseContext, noteOf, type Row } from '../bench-case.ts'
import {
  busyNote,
  compare,
  compared,
  cpuUs,
  faultsOf,
  type Measure,
  mainCpuUs,
  medianOf,
  perSec,
  type Rounds,
} from '../comparison.ts'
import { getRequest } from '../load/client.ts'
import { describeMachine, iterationsFor } from '../machine.ts'
import { formatGrid, median, whole } from '../report.ts'
import { heddleSide, startHeddle } from '../server.ts'
import { HELLO_LOAD, verifyHello } from './hello.ts'

const ONE_PROCESS = 'one-process'
const TWO_PROCESSES = 'two-processes'
const LANES = [1, 2, 4, 8] as const
/** CPU time of the handler, microseconds. */
const HANDLERS_US = [0, 50, 200, 2000] as const
const CONNECTIONS = 64

/**
 * What a request costs, fitted to the measurements. `n` lanes on `cores` cores serve at most
 * `min(1 / primary, n / lane, cores / (primary + lane))` requests in a unit of time: the primary is one thread, a lane is one, and together
 * they have no more than the cores.
 */
export interface LaneModel {
  /** CPU time of a request in the primary's thread, microseconds. */
  primaryUs: number
  /** CPU time of a request in its lane and the threads beside, with its handler, microseconds. */
  laneUs: number
  /** Lanes from which on the primary is the limit, where there are cores for all. */
  lanesAtLimit: number
}

export const laneModel = (primaryUs: number, allUs: number): LaneModel => ({
  primaryUs,
  laneUs: allUs - primaryUs,
  lanesAtLimit: Math.ceil((allUs - primaryUs) / primaryUs),
})

/** Requests per second that the model allows. */
export const modelPerSec = ({ primaryUs, laneUs }: LaneModel, lanes: number, cores: number): number =>
  1e6 * Math.min(1 / primaryUs, lanes / laneUs, cores / (primaryUs + laneUs))

export const lanes: BenchCase = {
  name: 'lanes',
  title: `1, 2, 4 and 8 lanes, handlers of 0, 50, 200 and 2,000 µs of CPU, ${CONNECTIONS} connections; two processes`,
  async run(context) {
    if (context.baselinesOnly) return { rows: [], details: null }
    // The generator takes a core of its own.
    const cores = Math.max(1, describeMachine().cores - 1)
    const perUs = iterationsFor(1) / 1000
    const sides = Object.assign({}, ...LANES.map((count) => heddleSide(context, nameOf(count), count)))
    const byHandler: Record<number, Rounds> = {}
    for (const handlerUs of HANDLERS_US) {
      context.say(`handler of ${handlerUs} µs`)
      const path = handlerUs === 0 ? '/hello/ada' : `/bench/cpu/${Math.round(perUs * handlerUs)}`
      byHandler[handlerUs] = await compare(context, {
        sides,
        load: { requests: [getRequest(path)], connections: CONNECTIONS },
      })
    }
    const primaryUs = median(byHandler[0]![nameOf(1)]!.map(mainCpuUs))!
    const models = HANDLERS_US.map((handlerUs) => [handlerUs, modelOf(byHandler[handlerUs]!, primaryUs)] as const)
    const grid = formatGrid([
      [
        'handler',
        ...LANES.map((count) => `${count}: /s (model)`),
        'primary µs',
        'lane µs',
        'primary is the limit from',
      ],
      ...models.map(([handlerUs, model]) => [
        `${handlerUs} µs`,
        ...LANES.map(
          (count) =>
            `${whole(medianOf(byHandler[handlerUs]!, nameOf(count), perSec))} (${whole(modelPerSec(model, count, cores))})`,
        ),
        model.primaryUs.toFixed(1),
        model.laneUs.toFixed(1),
        `${model.lanesAtLimit} lanes`,
      ]),
    ])
    context.say(`medians of ${context.rounds} rounds; the model is of ${cores} cores beside the generator\n${grid}`)
    const rows = models.map(([handlerUs, model]) =>
      alone({
        label: `lanes: the primary is the limit from, handler of ${handlerUs} µs`,
        unit: 'lanes',
        heddle: model.lanesAtLimit,
        target: null,
        faults: faultsOf(byHandler[handlerUs]!, ...LANES.map(nameOf)),
        ...noteOf(
          `primary ${model.primaryUs.toFixed(1)} µs, lane ${model.laneUs.toFixed(1)} µs a request`,
          busyNote(byHandler[handlerUs]!),
        ),
      }),
    )
    const processes = await compareProcesses(context)
    return {
      rows: [...rows, ...processRows(processes, cores)],
      details: { cores, models: Object.fromEntries(models), byHandler, grid, processes },
    }
  },
}

/** What several processes need, and one gets, too: a common key, and events that no SQLite file keeps. */
const SEVERAL = { AUTH_SECRET_KEY: 'known-to-every-process-of-the-benchmark', EVENT_BUS_DRIVER: 'in_process' }

/** What helps where the primary is the limit: a second process on the port, which the guardian starts. Each has one lane: the generator's connections are spread over them. */
async function compareProcesses(context: CaseContext): Promise<Rounds> {
  context.say('hello in one process and in two, each with one lane')
  const side = (name: string, processes: number) => () => startHeddle({ name, lanes: 1, processes, env: SEVERAL })
  return compare(context, {
    sides: { [ONE_PROCESS]: side(ONE_PROCESS, 1), [TWO_PROCESSES]: side(TWO_PROCESSES, 2) },
    load: HELLO_LOAD,
    before: verifyHello,
  })
}

function processRows(rounds: Rounds, cores: number): Row[] {
  const threads = `two busy threads in each, on ${cores} cores beside the generator`
  const row = (label: string, unit: string, measure: Measure): Row => ({
    label: `lanes: two processes to one, ${label}`,
    unit,
    ...compared(rounds, measure, TWO_PROCESSES, ONE_PROCESS, 'PROCESSES=1', threads),
    target: null,
  })
  return [row('throughput', 'requests/s', perSec), row('CPU', 'µs CPU/request', cpuUs)]
}

const nameOf = (count: number): string => `lanes-${count}`

/**
 * By one lane: more threads than cores cost what has nothing to do with a request.
 * @param primaryUs with a handler of 0 µs, where the primary is busy: between long handlers it is woken for each request, and has its own timers
 */
function modelOf(rounds: Rounds, primaryUs: number): LaneModel {
  return laneModel(primaryUs, median(rounds[nameOf(1)]!.map(cpuUs))!)
}
