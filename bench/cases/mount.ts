import assert from 'node:assert/strict'
import { type BenchCase, ratioTo } from '../bench-case.ts'
import { compare, compared, cpuUs, type Measure, perSec } from '../comparison.ts'
import { type BenchServer, heddleSide, serverSide, startHeddle } from '../server.ts'
import { HELLO_LOAD } from './hello.ts'

const DOMAINS = ['bench/mounted']

export const mount: BenchCase = {
  name: 'mount',
  title: 'the same GET /hello/:name of an application of Hono, behind http.mount and on node:http',
  async run(context) {
    const side = { name: 'heddle', lanes: 1, domains: DOMAINS, profileDir: context.profileDir('heddle') }
    const rounds = await compare(context, {
      sides: {
        ...(context.baselinesOnly ? {} : { heddle: () => startHeddle(side) }),
        ...heddleSide(context, 'route', 1),
        ...serverSide(context, 'hono', 'bench/baselines/hello-hono.ts'),
      },
      load: HELLO_LOAD,
      before: verify,
    })
    const beside = (measure: Measure) => compared(rounds, measure, 'heddle', 'hono', 'Hono on node:http')
    /** What the fetch handler costs more than a route of ours in the same round. */
    const overRoute: Measure = (result) => {
      const round = rounds.heddle?.indexOf(result) ?? -1
      return cpuUs(result) - (round < 0 ? 0 : cpuUs(rounds.route![round]!))
    }
    return {
      rows: [
        {
          ...{ label: 'mount: CPU per request over that of a route', unit: 'µs CPU/request', ...beside(overRoute) },
          target: ratioTo('at most', 1.3),
        },
        {
          ...{ label: 'mount: CPU per request, whole process', unit: 'µs CPU/request', ...beside(cpuUs) },
          target: null,
        },
        { label: 'mount: requests per second', unit: 'requests/s', ...beside(perSec), target: null },
      ],
      details: { rounds },
    }
  },
}

async function verify({ host, port, name }: BenchServer): Promise<void> {
  const response = await fetch(`http://${host}:${port}/hello/ada`)
  assert.equal(response.status, 200, name)
  assert.equal(await response.text(), '{"success":true,"data":{"hello":"ada"}}', name)
}
