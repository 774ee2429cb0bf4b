import type { BenchCase, Row } from '../bench-case.ts'
import { inChild } from '../child.ts'
import type measureSteps from '../micro/steps.ts'

export const steps: BenchCase = {
  name: 'steps',
  title: 'Steps of a request in one thread: the copy to a lane, the route, the JSON of the answer',
  async run({ measureMs, rounds, baselinesOnly, profileDir }) {
    if (baselinesOnly) return { rows: [], details: {} }
    const figures = await inChild<typeof measureSteps>('micro/steps.ts', { measureMs, rounds }, profileDir('steps'))
    const { copy, route, json } = figures
    return {
      rows: [
        row('a request written to a ring and read', copy, 'a structured clone'),
        row('a route found among six', route, 'find-my-way'),
        row('an answer as JSON', json, 'JSON.stringify'),
      ],
      details: figures,
    }
  },
}

const row = (
  step: string,
  { heddleNs, baselineNs }: { heddleNs: number; baselineNs: number },
  baselineName: string,
): Row => ({
  label: `steps: ${step}`,
  unit: 'ns',
  heddle: heddleNs,
  baseline: baselineNs,
  baselineName,
  ratio: heddleNs / baselineNs,
  target: null,
  faults: [],
})
