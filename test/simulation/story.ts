/** Makes the story of a seed that fails as short as it can, and tells it. */
import { Batch, ENGINE, STEPS } from './batch.ts'
import type { Deed, Rates } from './plan.ts'
import { type Engine, Run, type RunOptions } from './run.ts'

type Part = Deed | keyof Rates
const PARTS: readonly Part[] = [
  'request',
  'replay',
  'edit',
  'delete',
  'pause',
  'kill',
  'freeze',
  'hold',
  'jump',
  'reload',
  'subscribe',
  'unsubscribe',
  'crash',
  'fail',
  'unrecoverable',
  'slow',
  'full',
  'poison',
  'lacking',
  'child',
]
/** Lines of a story at most: the last ones, and before them those of the events that the finding names. */
const LINES_MAX = 60

/** Fewer steps, and fewer kinds of faults, as long as it fails. */
export function shortest(engine: Engine, { seed, steps }: RunOptions): RunOptions {
  const fails = (options: RunOptions): boolean => new Run(engine, options).execute().finding !== null
  let options: RunOptions = { seed, steps, without: new Set() }
  const cut = (): void => {
    for (let less = Math.floor(options.steps / 2); less >= 1; ) {
      const shorter = { ...options, steps: options.steps - less }
      if (fails(shorter)) options = shorter
      if (options.steps !== shorter.steps || less >= options.steps) less = Math.floor(less / 2)
    }
  }
  cut()
  for (const part of PARTS) {
    const fewer = { ...options, without: new Set([...options.without!, part]) }
    if (fails(fewer)) options = fewer
  }
  cut()
  return options
}

/** The lines of a run that matter for its finding. */
export function storyOf(engine: Engine, options: RunOptions): string[] {
  const lines: string[] = []
  const { finding, plan } = new Run(engine, { ...options, tell: (line) => lines.push(line) }).execute()
  const names = new Set((finding ?? '').match(/\b(?:e\d+|[gt]\d+\.[GT])\b/g) ?? [])
  const isNamed = (line: string): boolean => {
    for (const name of names) if (new RegExp(`\\b${name.replace('.', '\\.')}\\b`).test(line)) return true
    return false
  }
  const isOfLanes = (line: string): boolean => !/\be\d+\b/.test(line)
  const told = lines.filter((line) => isNamed(line) || isOfLanes(line))
  const left = told.length - LINES_MAX
  const { groups, lanes } = plan
  return [
    `seed ${options.seed}, ${options.steps} steps${options.without?.size ? `, without ${[...options.without].join(', ')}` : ''}`,
    `lanes: ${lanes}`,
    ...groups.map(({ group, event, options: each }) => `${group} on ${event}: ${JSON.stringify(each)}`),
    `rates: ${JSON.stringify(plan.rates)}`,
    ...(left > 0 ? [`… ${left} lines`] : []),
    ...told.slice(-LINES_MAX),
    finding ?? 'nothing was found',
  ]
}

/** Runs seeds for so long. @returns the shortest story of the first that fails, or null */
export async function findingWithin(options: { firstSeed: number; seconds: number }): Promise<{
  story: string | null
  batch: Batch
}> {
  const firstSeed = Number(process.env.SEED ?? options.firstSeed)
  const batch = new Batch()
  for (let seed = firstSeed; batch.seconds < options.seconds; seed++) {
    const finding = await batch.run(seed)
    if (finding === null) continue
    const story = storyOf(ENGINE, shortest(ENGINE, { seed, steps: STEPS })).join('\n')
    return { story: `${finding}\n${story}\n\nnpm run simulate -- --seed ${seed} --story`, batch }
  }
  return { story: null, batch }
}
