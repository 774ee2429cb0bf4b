// What the numbers in a flight recorder mean: in a process that runs, and in one that is dead.

import type { BlackBox, FlightStep, WorkInFlight } from '../../contracts/registry.ts'
import type { Origin } from '../../contracts/tracing.ts'
import { type RawStep, STEP_EVENT, STEP_JOB, STEP_REQUEST } from '../../transport/memory/flight-recorder.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { RouteEntry, Routing } from '../http/routes.ts'

/** What a route, a subscription or a job is called. */
export interface NamedWork {
  /** `GET /users/:id`, an event's name, a job's name. */
  name: string
  plugin: string
  /** Of a subscription: its identity. Left out: the name. */
  handler?: string
  isStream?: boolean
}

export interface LaneNames {
  index: number
  /** By the subscriber's number in the lane. */
  subscriptions: Record<string, NamedWork>
  /** By number. */
  jobs: readonly NamedWork[]
}

/** As a dead process leaves them to the next one. */
export interface WorkNames {
  /** By number. */
  routes: Record<string, NamedWork>
  /** By the name of the lane's flight file. */
  lanes: Record<string, LaneNames>
  /** Absolute path of each plugin's file, by plugin. */
  files: Record<string, string>
}

const namedRoute = ({ method, path, plugin, kind }: RouteEntry): NamedWork => ({
  name: `${method} ${path}`,
  plugin,
  isStream: kind === 'stream',
})

export function routeNames({ table }: Routing): Record<string, NamedWork> {
  return Object.fromEntries(table.list().map((entry) => [entry.number, namedRoute(entry)]))
}

export function laneNames({ index, manifest }: Lane): LaneNames {
  const subscriptions: Record<string, NamedWork> = {}
  for (const { subscriberIndex, event, plugin, identity } of manifest?.subscriptions ?? [])
    subscriptions[subscriberIndex] = { name: event, plugin, handler: identity }
  return { index, subscriptions, jobs: manifest?.jobs.map(({ name, plugin }) => ({ name, plugin })) ?? [] }
}

/** The plugin whose file the stack names first. @param files absolute path of each plugin's file, by plugin */
export function pluginIn(
  stack: readonly { readonly file: string }[],
  files: Readonly<Record<string, string>>,
): string | undefined {
  const byFile = new Map(Object.entries(files).map(([plugin, file]) => [file, plugin]))
  return stack.map(({ file }) => byFile.get(file)).find((plugin) => plugin !== undefined)
}

/** @returns undefined for a call, and for what is not hosted any more */
export function namedWork(
  { kind, subject }: RawStep,
  routeOf: (number: number) => NamedWork | undefined,
  lane: LaneNames | undefined,
): NamedWork | undefined {
  if (kind === STEP_REQUEST) return routeOf(subject)
  if (kind === STEP_JOB) return lane?.jobs[subject]
  return kind === STEP_EVENT ? lane?.subscriptions[subject] : undefined
}

/** Tells the handler whose work a step of the lane is; null where `namedWork` has no name. */
export function originsIn(lane: Lane, routing: Routing): (step: RawStep) => Origin | null {
  const names = laneNames(lane)
  // Not all of them: each lane is looked at once a second, in the listener's thread.
  const routeOf = (number: number): NamedWork | undefined => {
    const entry = routing.table.numbered(number)
    return entry && namedRoute(entry)
  }
  return (step) => {
    const work = namedWork(step, routeOf, names)
    return work === undefined ? null : { plugin: work.plugin, handler: work.handler ?? work.name }
  }
}

/** Handlers that a lane has begun and not ended, or ended just before, as far as its flight recorder goes back. */
export function handlersIn(lane: Lane, routing: Routing): Origin[] {
  const originOf = originsIn(lane, routing)
  const handlers = new Map<string, Origin>()
  for (const step of lane.flight.steps()) {
    if (step.endedMs !== 0 && !hasJustEnded(step)) continue
    const origin = originOf(step)
    if (origin !== null) handlers.set(`${origin.plugin} ${origin.handler}`, origin)
  }
  return [...handlers.values()]
}

/** Work that a line of the log names at most. */
const NAMED_MAX = 10

/** What the log says of a cause: who is guilty, or what was in flight. @param count of all, of which `works` has the oldest */
export function causeText(guilty: BlackBox['guilty'], works: readonly WorkInFlight[], count: number): string {
  if (guilty !== null)
    return ` in ${[guilty.handler ?? guilty.plugin, guilty.line].filter((part) => part !== null).join(' at ')}`
  if (count === 0) return '. The cause is unknown; nothing was in flight'
  const names = works.slice(0, NAMED_MAX).map(({ name }) => name)
  const rest = count > names.length ? ` and ${count - names.length} more` : ''
  return `. The cause is unknown; in flight: ${names.join(', ')}${rest}`
}

/** `it threw (sell.ts:1:1)`, as far as the line is known. */
export const withLine = (message: string, line: string | null | undefined): string =>
  line == null ? message : `${message} (${line})`

/** What a handler has begun counts as there until this long after its end: a timer that it left may still run, milliseconds. */
const AFTERMATH_MS = 1000

/** The step has ended, and not long ago. */
export const hasJustEnded = ({ endedMs }: RawStep): boolean => endedMs !== 0 && Date.now() - endedMs < AFTERMATH_MS

export function kindOf({ kind }: RawStep): FlightStep['kind'] {
  if (kind === STEP_REQUEST) return 'request'
  if (kind === STEP_JOB) return 'job'
  return kind === STEP_EVENT ? 'event' : 'call'
}

export function idOf({ kind, id }: RawStep): string | null {
  if (id === '') return null
  return kind === STEP_EVENT ? `evt_${id}` : id
}

/** A step that is no call and has not ended. @param nowMs since the epoch */
export function workOfStep(step: RawStep, { name, plugin }: NamedWork, nowMs: number): WorkInFlight {
  const kind = kindOf(step) as WorkInFlight['kind']
  return { kind, name, plugin, id: idOf(step), for_ms: Math.max(0, nowMs - step.begunMs) }
}
