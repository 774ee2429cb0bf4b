// How long the list of a queue with a million waiting events takes.
import { type CaseContext, type CaseResult, figureTo, type Row } from '../bench-case.ts'
import { Owner } from '../child.ts'
import { STORED_NOTE } from '../domains/bench/tick-count.ts'
import { median } from '../report.ts'
import { askJson, type BenchServer } from '../server.ts'
import { ask, STORES, type Stage, type Store, startOn, until } from './stage.ts'

const STORED = 1_000_000
const PROBES = 20
const MOST_MS = 100
/** Until all that is published is counted, milliseconds. */
const SETTLE_MS = 60_000

/** What is asked for. `{queue}` is the name of the subscriber. */
const LISTS = {
  queues: '/system/queues',
  page: '/system/queues/{queue}?event=work.turn&state=waiting',
} as const
type List = keyof typeof LISTS
type Lists = Record<List, number[]>

interface Queue {
  readonly event: string
  readonly subscriber: string
  /** Of many, only the first are counted. */
  readonly waiting: number
  readonly waiting_estimate?: number
}

export async function measureLists(context: CaseContext, stage: Stage): Promise<CaseResult> {
  const measured: Partial<Record<Store, Lists>> = {}
  for (const store of context.baselinesOnly ? [] : STORES) {
    context.step(`a queue of ${STORED.toLocaleString('en')}, ${store}`)
    const lists = await listsOn(store, context, stage)
    const told = (Object.keys(LISTS) as List[]).map(
      (list) => `${list} ${median(lists[list])!.toFixed(1)} (at most ${Math.max(...lists[list]).toFixed(0)}) ms`,
    )
    context.say(`${store}, ${STORED.toLocaleString('en')} waiting: ${told.join(', ')}`)
    measured[store] = lists
  }
  return { rows: STORES.flatMap((store) => rowOf(store, measured[store])), details: { lists: measured } }
}

function rowOf(store: Store, lists: Lists | undefined): Row[] {
  if (lists === undefined) return []
  const { queues, page } = lists
  return [
    {
      label: `work: the list of a queue in which ${STORED.toLocaleString('en')} events wait, ${store}`,
      unit: 'ms',
      heddle: median(page),
      baseline: null,
      baselineName: null,
      ratio: null,
      target: figureTo('at most', MOST_MS, 'ms'),
      faults: [],
      note: `at most ${Math.max(...page).toFixed(0)}; the list of all queues with their figures ${median(queues)!.toFixed(1)}, at most ${Math.max(...queues).toFixed(0)}`,
    },
  ]
}

async function listsOn(store: Store, context: CaseContext, stage: Stage): Promise<Lists> {
  const owner = new Owner()
  try {
    const server = await startOn(context, owner, await stage.settings(store), `work-lists-${store}`)
    await ask(server, 'fill', { events: STORED, note: STORED_NOTE })
    let queue = await queueOf(server)
    await until(
      async () => {
        queue = await queueOf(server)
        return (queue.waiting_estimate ?? queue.waiting) > STORED * 0.9
      },
      'all are counted',
      SETTLE_MS,
    )
    const paths = Object.entries(LISTS) as [List, string][]
    const lists: Lists = { queues: [], page: [] }
    for (let probe = 0; probe < PROBES; probe++)
      for (const [list, path] of paths) {
        const startMs = performance.now()
        await askJson(server, path.replace('{queue}', encodeURIComponent(queue.subscriber)))
        lists[list].push(performance.now() - startMs)
      }
    return lists
  } finally {
    await owner.end()
  }
}

async function queueOf(server: BenchServer): Promise<Queue> {
  const queues = await askJson<Queue[]>(server, LISTS.queues)
  return queues.find(({ event }) => event === 'work.turn')!
}
