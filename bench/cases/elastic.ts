import { postgresServer } from '../../test/support/servers/postgres.ts'
import { redisServer } from '../../test/support/servers/redis.ts'
import { type BenchCase, type CaseResult, type Row, ratioTo } from '../bench-case.ts'
import { inChild, Owner } from '../child.ts'
import { medianOf } from '../comparison.ts'
import type measureQueries from '../elastic/db.ts'
import { measureEvents } from '../elastic/events.ts'
import { measureState } from '../elastic/state.ts'
import { median } from '../report.ts'
import { lostIn } from '../ticks.ts'

const DB_CONNECTIONS = 8
const DB_CALLERS = 64

/** The stage with many replicas: each part is compared with the bare driver that it uses, on separate servers. */
export const elastic: BenchCase = {
  name: 'elastic',
  title: 'Events between two replicas, shared state and PostgreSQL, each beside its bare driver',
  async run(context): Promise<CaseResult> {
    if (context.baselinesOnly) return { rows: [], details: null }
    const { rounds, measureMs, say } = context
    const owner = new Owner()
    try {
      const redis = await redisServer(owner, { own: true })
      const postgres = await postgresServer(owner, { own: true })
      if (redis === null || postgres === null) throw new Error(owner.reason)
      const events = await measureEvents(context, redis.env)
      const state = await measureState({ env: redis.env, measureMs, rounds })
      say(`state.increment ${Math.round(state.heddle.perSecond)}/s`)
      const { host, port, user, password, database } = postgres
      const access = { host, port, user, password, database }
      const plan = { access, connections: DB_CONNECTIONS, callers: DB_CALLERS, measureMs, rounds }
      const db = await inChild<typeof measureQueries>('elastic/db.ts', plan, context.profileDir('db'))
      say(`db.query ${Math.round(db.heddle.perSecond)}/s, pg ${Math.round(db.bare.perSecond)}/s`)
      const bareState = Math.max(state.barePipeline.perSecond, state.bareLoops.perSecond)
      const eventsPerSec = (side: keyof typeof events) => medianOf(events, side, (round) => round.perSec) ?? 0
      const cost = (of: 'allUs' | 'serverUs') =>
        [events.heddle, events.bare].map((rounds) => median(rounds.map((round) => round[of]))?.toFixed(1)).join(' / ')
      const costs = `CPU per event ${cost('allUs')} µs, the server's part ${cost('serverUs')}`
      const [heddle, bare] = [eventsPerSec('heddle'), eventsPerSec('bare')]
      const windowed = `with a window ${Math.round(state.heddleWindow.perSecond)}/s`
      const named = `${db.ratioNamed.toFixed(2)} × pg with named statements`
      return {
        rows: [
          row('events from one replica to another', 'events/s', heddle, bare, 1, costs, lostIn(events.heddle)),
          row('state.increment', 'calls/s', state.heddle.perSecond, bareState, 0.8, windowed, state.faults),
          row('db.query on PostgreSQL', 'queries/s', db.heddle.perSecond, db.bare.perSecond, 0.85, named),
        ],
        details: { events, state, db },
      }
    } finally {
      await owner.end()
    }
  },
}

function row(
  what: string,
  unit: string,
  heddle: number,
  baseline: number,
  target: number,
  note: string,
  faults: string[] = [],
): Row {
  const ratio = { ratio: heddle / baseline, target: ratioTo('at least', target) }
  return { label: `elastic: ${what}`, unit, heddle, baseline, baselineName: 'bare driver', ...ratio, faults, note }
}
