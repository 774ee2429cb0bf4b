import { type BenchCase, ratioTo } from '../bench-case.ts'
import { compare, compared, perSec } from '../comparison.ts'
import { getRequest } from '../load/client.ts'
import { iterationsFor } from '../machine.ts'
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
          ...compared(rounds, perSec, 'two-lanes', 'one-lane', 'one lane'),
          target: ratioTo('at least', 1.8),
        },
      ],
      details: { iterations, rounds },
    }
  },
}
