// What the numbers in a flight recorder mean: in a process that runs, and in one that is dead.

import type { FlightStep, WorkInFlight } from '../../contracts/registry.ts'
import type { Origin } from '../../core/causality/context.ts'
import {
  type RawStep,
  STEP_EVENT,
  STEP_JOB,
  STEP_REQUEST,
  STEP_STREAM_EVENT,
} from '../../transport/memory/flight-recorder.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Routing } from '../http/routes.ts'

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

export function routeNames({ table }: Routing): Record<string, NamedWork> {
  const routes: Record<string, NamedWork> = {}
  for (const { number, method, path, plugin, isStream } of table.list())
    routes[number] = { name: `${method} ${path}`, plugin, isStream }
  return routes
}

export function laneNames({ index, manifest }: Lane): LaneNames {
  const subscriptions: Record<string, NamedWork> = {}
  for (const { subscriberIndex, event, plugin, identity } of manifest?.subscriptions ?? [])
    subscriptions[subscriberIndex] = { name: event, plugin, handler: identity }
  return { index, subscriptions, jobs: manifest?.jobs.map(({ name, plugin }) => ({ name, plugin })) ?? [] }
}

/** @returns undefined for a call, and for what is not hosted any more */
export function namedWork(
  { kind, subject }: RawStep,
  routes: Record<string, NamedWork>,
  lane: LaneNames | undefined,
): NamedWork | undefined {
  if (kind === STEP_REQUEST) return routes[subject]
  if (kind === STEP_JOB) return lane?.jobs[subject]
  return isEvent(kind) ? lane?.subscriptions[subject] : undefined
}

/** Tells the handler whose work a step of the lane is; null where `namedWork` has no name. */
export function originsIn(lane: Lane, routing: Routing): (step: RawStep) => Origin | null {
  const routes = routeNames(routing)
  const names = laneNames(lane)
  return (step) => {
    const work = namedWork(step, routes, names)
    return work === undefined ? null : { plugin: work.plugin, handler: work.handler ?? work.name }
  }
}

const isEvent = (kind: number): boolean => kind === STEP_EVENT || kind === STEP_STREAM_EVENT

export function kindOf({ kind }: RawStep): FlightStep['kind'] {
  if (kind === STEP_REQUEST) return 'request'
  if (kind === STEP_JOB) return 'job'
  return isEvent(kind) ? 'event' : 'call'
}

export function idOf({ kind, id }: RawStep): string | null {
  if (id === '') return null
  return isEvent(kind) ? `evt_${id}` : id
}

/** A step that is no call and has not ended. @param nowMs since the epoch */
export function workOfStep(step: RawStep, { name, plugin }: NamedWork, nowMs: number): WorkInFlight {
  const kind = kindOf(step) as WorkInFlight['kind']
  return { kind, name, plugin, id: idOf(step), for_ms: Math.max(0, nowMs - step.begunMs) }
}
