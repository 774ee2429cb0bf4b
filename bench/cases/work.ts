import { alone, type BenchCase, type CaseContext, type CaseResult } from '../bench-case.ts'
import { Owner } from '../child.ts'
import { measureCancels } from '../work/cancels.ts'
import { measureCosts } from '../work/costs.ts'
import { measureFollowers } from '../work/followers.ts'
import { measureLists } from '../work/lists.ts'
import { openStage, type Stage } from '../work/stage.ts'
import { measureTurns } from '../work/turns.ts'

const PARTS = [measureCosts, measureTurns, measureCancels, measureFollowers, measureLists] as const

export const work: BenchCase = {
  name: 'work',
  title:
    'Events with limits, turns, priorities, cancels and followers, beside BullMQ, graphile-worker and pg-boss (plain ones: durable)',
  async run(context) {
    const owner = new Owner()
    try {
      const stage = await openStage(context, owner)
      const results: CaseResult[] = []
      for (const measure of PARTS) results.push(await measured(measure, context, stage))
      return { rows: results.flatMap(({ rows }) => rows), details: results.map(({ details }) => details) }
    } finally {
      await owner.end()
    }
  },
}

/** A part that fails leaves the figures of the others. */
async function measured(measure: (typeof PARTS)[number], context: CaseContext, stage: Stage): Promise<CaseResult> {
  try {
    return await measure(context, stage)
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    context.say(`failed: ${text}`)
    const label = `work: ${measure.name}`
    return { rows: [alone({ label, unit: '', heddle: null, target: null, faults: [text] })], details: { failed: text } }
  }
}
