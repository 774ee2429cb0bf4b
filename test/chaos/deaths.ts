import type { LogLine } from '../support/heddle.ts'
import type { FaultKind } from './schedule.ts'

/** What the message of a lane's death says of its cause. The kinds that it does not tell apart are told by the routes in flight. */
const SAID: readonly [RegExp, FaultKind][] = [
  [/thrown by a timer/, 'timer'],
  [/rejected by nobody/, 'rejection'],
  [/\bcode:? 41\b/, 'exit'],
  [/\bcode:? 42\b/, 'transaction'],
  [/\bcode:? 66\b/, 'poison'],
  [/memory limit|out of memory/i, 'heap'],
]
const ROUTE = /\/chaos\/faults\/(\w+)/
/**
 * Whose handler was in flight when a loop stood still, the likeliest first: those that block it; then those that end the thread,
 * which has to wait for what the thread pool still does for it, and stands still meanwhile.
 */
const LIKELIEST = ['loop', 'heap', 'buffers', 'exit', 'transaction', 'timer', 'rejection'] as const

/** The fault that ended a lane; `other` when nothing says so: the lane of an innocent. */
export function causeOf(message: string, inFlight: readonly string[]): FaultKind | 'other' {
  for (const [said, kind] of SAID) if (said.test(message)) return kind
  const kinds = inFlight.map((label) => ROUTE.exec(label)?.[1])
  return LIKELIEST.find((kind) => kinds.includes(kind)) ?? 'other'
}

export interface Death {
  /** Milliseconds since the epoch. */
  readonly timeMs: number
  readonly cause: FaultKind | 'other'
  readonly message: string
  readonly inFlight: readonly string[]
}

/** The deaths of lanes that a log tells of, in its order. */
export function deathsOf(logs: readonly LogLine[]): Death[] {
  return logs
    .filter(({ identity, msg }) => identity === 'supervisor' && /^Lane \S+ died/.test(msg))
    .map(({ time, msg, in_flight }) => {
      const inFlight = (in_flight as string[] | undefined) ?? []
      return { timeMs: time as number, cause: causeOf(msg, inFlight), message: msg, inFlight }
    })
}
