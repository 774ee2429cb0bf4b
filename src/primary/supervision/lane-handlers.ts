import type { Origin } from '../../core/causality/context.ts'
import {
  type RawStep,
  STEP_CALL,
  STEP_EVENT,
  STEP_JOB,
  STEP_REQUEST,
  STEP_STREAM_EVENT,
} from '../../transport/memory/flight-recorder.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Routing } from '../http/routing.ts'
import { AFTERMATH_MS, type Handlers } from './sightings.ts'

/** The handlers that a lane has begun and not ended, or ended shortly before, as far as its flight recorder goes back. */
export function handlersOf(lane: Lane, routing: Routing, nowMs: number): Handlers {
  const handlers = new Map<string, Origin>()
  for (const step of lane.flight.steps()) {
    if (step.endedMs !== 0 && nowMs - step.endedMs > AFTERMATH_MS) continue
    const key = `${step.kind} ${step.subject}`
    if (handlers.has(key)) continue
    const origin = originOf(step, lane, routing)
    if (origin !== null) handlers.set(key, origin)
  }
  return named(handlers)
}

/** The handler that a lane has begun last and not ended; null when there is none. */
export function lastBegunIn(lane: Lane, routing: Routing): Origin | null {
  const last = lane.flight.steps().findLast(({ kind, endedMs }) => kind !== STEP_CALL && endedMs === 0)
  return last === undefined ? null : originOf(last, lane, routing)
}

/** The handler whose work it is; null for a call, and for what the lane does not host any more. */
export function originOf({ kind, subject }: RawStep, { manifest }: Lane, routing: Routing): Origin | null {
  switch (kind) {
    case STEP_REQUEST: {
      const plugin = routing.pluginOf(subject)
      return plugin === null ? null : { plugin, handler: routing.nameOf(subject) }
    }
    case STEP_EVENT:
    case STEP_STREAM_EVENT: {
      const subscription = manifest?.subscriptions.find(({ subscriberIndex }) => subscriberIndex === subject)
      return subscription === undefined ? null : { plugin: subscription.plugin, handler: subscription.identity }
    }
    case STEP_JOB: {
      const job = manifest?.jobs[subject]
      return job === undefined ? null : { plugin: job.plugin, handler: job.name }
    }
    default:
      return null
  }
}

/** By names: the numbers of subscribers and jobs are a lane's own. */
function named(handlers: Handlers): Handlers {
  return new Map([...handlers.values()].map((origin) => [`${origin.plugin} ${origin.handler}`, origin]))
}
