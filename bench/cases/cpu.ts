import type { BenchCase } from '../bench-case.ts'
import { iterationsFor } from '../calibrate.ts'
import { busyNote, compare, faultsOf, medianOf, medianRatio, perSec } from '../comparison.ts'
import { getRequest } from '../load/http-request.ts'
import { heddleSide } from '../server.ts'

const HANDLER_MS = 2
const CONNECTIONS = 8

export const cpu: BenchCase = {
  name: 'cpu',
  title: 'A handler of 2 ms pure CPU, two lanes against one',
  async run(context) {
    const iterations = iterationsFor(HANDLER_MS)
    const rounds = await compare(context, {
      sides: { ...heddleSide(context, 'one-lane', 1), ...heddleSide(context, 'two-lanes', 2) },
      load: { requests: [getRequest(`/bench/cpu/${iterations}`)], connections: CONNECTIONS },
    })
    return {
      rows: [
        {
          label: 'cpu: 2 ms handler, two lanes',
          unit: 'requests/s',
          heddle: medianOf(rounds, 'two-lanes', perSec),
          baseline: medianOf(rounds, 'one-lane', perSec),
          baselineName: 'one lane',
          ratio: medianRatio(rounds, 'two-lanes', 'one-lane', perSec),
          target: { of: 'ratio', sense: 'at least', value: 1.8, unit: '×' },
          faults: faultsOf(rounds, 'two-lanes', 'one-lane'),
          ...busyNote(rounds),
        },
      ],
      details: { iterations, rounds },
    }
  },
}
