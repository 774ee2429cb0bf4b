import type { BlackBox } from '../../src/contracts/registry.ts'
import type { LogLine } from '../support/heddle.ts'
import type { FaultKind } from './schedule.ts'

/** Whose doing each kind is. */
const KIND_OF: Readonly<Record<string, FaultKind>> = {
  'chaos.ThrowInTimer': 'timer',
  'chaos.RejectUnheard': 'rejection',
  'chaos.ExitProcess': 'exit',
  'chaos.LoopForEver': 'loop',
  'chaos.ExhaustHeap': 'heap',
  'chaos.BurstBuffers': 'buffers',
  'chaos.LeaveTransaction': 'transaction',
  'chaos.TakePoison': 'poison',
}

/** What the runtime's log says of a lane's death. */
type Told = Pick<BlackBox, 'guilty' | 'in_flight'>

/** The fault that ended a lane: the plugin that the runtime blames, or else the only culprit there. `other`: nothing says so. */
export function causeOf({ guilty, in_flight }: Told): FaultKind | 'other' {
  const blamed = KIND_OF[guilty?.plugin ?? '']
  if (blamed !== undefined) return blamed
  const suspects = new Set(in_flight.flatMap(({ plugin }) => KIND_OF[plugin ?? ''] ?? []))
  return suspects.size === 1 ? [...suspects][0]! : 'other'
}

export interface Death {
  /** Milliseconds since the epoch. */
  readonly timeMs: number
  readonly cause: FaultKind | 'other'
  readonly message: string
  /** Routes and events. */
  readonly inFlight: readonly string[]
}

/** The deaths of lanes that a log tells of, in its order. */
export function deathsOf(logs: readonly LogLine[]): Death[] {
  return logs
    .filter(({ identity, msg }) => identity === 'supervisor' && /^Lane \S+ died/.test(msg))
    .map((line) => {
      const told = line as LogLine & Told
      const inFlight = told.in_flight.map(({ name }) => name)
      return { timeMs: line.time as number, cause: causeOf(told), message: line.msg, inFlight }
    })
}
