/** What a run has to do with: its subscribers, and how often what goes wrong. Drawn from its seed, and printed with it. */
import type { SubscribeOptions } from '../../src/contracts/event-bus.ts'
import type { Draw } from './draw.ts'

export interface GroupPlan {
  readonly group: string
  readonly event: string
  readonly options: Required<Pick<SubscribeOptions, 'retries' | 'backoffMs' | 'timeoutMs' | 'broadcast' | 'onDead'>> & {
    concurrency?: number
  }
}

/** How often, of 1. */
export interface Rates {
  /** A lane dies before, in or after one of its steps. */
  crash: number
  fail: number
  unrecoverable: number
  /** A handler takes longer than its time limit. */
  slow: number
  /** A lane's ring has no room. */
  full: number
  /** An event kills every lane that handles it. */
  poison: number
  /** A plugin does not boot in a lane. */
  lacking: number
  /** A handler publishes. */
  child: number
  /** A tool that a handler needs is away. */
  away: number
}

/** What somebody does from outside, each with its weight. */
export type Deed = keyof typeof DEEDS
const DEEDS = {
  publish: 24,
  request: 2,
  replay: 3,
  edit: 1,
  delete: 1,
  pause: 1,
  kill: 1,
  freeze: 1,
  hold: 1,
  jump: 1,
  reload: 1,
  subscribe: 2,
  unsubscribe: 2,
}

export interface Plan {
  readonly lanes: number
  readonly groups: readonly GroupPlan[]
  readonly keys: number
  readonly keyed: number
  readonly delayed: number
  readonly mortal: number
  readonly maxQueue: number
  readonly maxDeadBytes: number
  readonly pauseMs: number
  /** Its plugin does not boot in a quarantine lane; null: all do. */
  readonly neverInQuarantine: string | null
  readonly rates: Rates
  readonly deeds: readonly Deed[]
}

export const EVENTS = ['a.b', 'c.d'] as const

export function planOf(draw: Draw): Plan {
  const groups = Array.from({ length: draw.between(1, 4) }, (_, n) => groupOf(draw, `g${n}.G`))
  const deeds: Deed[] = []
  for (const [deed, weight] of Object.entries(DEEDS) as [Deed, number][]) {
    // Most runs have but some of them: what happens all the time hides what is rare.
    if (deed !== 'publish' && draw.is(0.4)) continue
    for (let n = 0; n < weight; n++) deeds.push(deed)
  }
  return {
    lanes: draw.between(1, 3),
    groups,
    keys: draw.between(1, 3),
    keyed: draw.of([0, 0.5, 0.5, 1]),
    delayed: draw.of([0, 0.1, 0.3]),
    mortal: draw.of([0, 0.1, 0.4]),
    maxQueue: draw.of([12, 1000, 1000, 1000]),
    maxDeadBytes: draw.of([3000, 1 << 26, 1 << 26, 1 << 26]),
    pauseMs: draw.of([3, 10, 40]),
    neverInQuarantine: draw.is(0.2) ? 'g0.G' : null,
    rates: {
      crash: draw.of([0, 0.001, 0.004, 0.01]),
      fail: draw.of([0, 0.05, 0.3]),
      unrecoverable: draw.of([0, 0.02]),
      slow: draw.of([0, 0.02, 0.1]),
      full: draw.of([0, 0, 0.1]),
      poison: draw.of([0, 0, 0.03]),
      lacking: draw.of([0, 0, 0.1]),
      child: draw.of([0, 0.1]),
      away: draw.of([0, 0, 0.1]),
    },
    deeds,
  }
}

function groupOf(draw: Draw, group: string): GroupPlan {
  const broadcast = draw.is(0.12)
  const options: GroupPlan['options'] = {
    retries: draw.of([0, 0, 1, 3]),
    backoffMs: draw.of([0, 10, 300]),
    timeoutMs: draw.of([150, 400, 2000]),
    broadcast,
    onDead: !broadcast && draw.is(0.5) ? 'park' : 'skip',
  }
  const concurrency = draw.of([undefined, undefined, 1, 2])
  if (concurrency !== undefined) options.concurrency = concurrency
  return { group, event: draw.of(EVENTS), options }
}
