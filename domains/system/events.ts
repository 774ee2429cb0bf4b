import { z } from 'zod'
import type { EventContracts, PayloadsOf } from '#heddle'

/** As a black box has them. */
const guilty = z
  .object({
    plugin: z.string().nullable(),
    handler: z.string().nullable(),
    line: z.string().nullable(),
    evidence: z.enum(['stack', 'origin', 'alone']),
  })
  .nullable()
const inFlight = z.array(
  z.object({
    kind: z.enum(['request', 'event', 'job']),
    name: z.string(),
    plugin: z.string(),
    id: z.string().nullable(),
    for_ms: z.number(),
  }),
)

const contracts = {
  /** A delivery whose last attempt has failed. */
  'event.delivery.failed': z.object({
    event: z.string(),
    event_id: z.string(),
    subscriber: z.string(),
    error: z.string(),
    attempts: z.number().int().positive(),
  }),
  /** The black box of a lane that has died, with its last steps. The runtime itself publishes it. */
  'runtime.lane.died': z.object({
    at: z.string(),
    lane: z.number().int(),
    reason: z.enum(['stalled', 'memory', 'descriptors', 'exited', 'crashed', 'broken', 'boot', 'process']),
    message: z.string(),
    guilty,
    stack: z.array(z.string()),
    stood_still_ms: z.number(),
    lived_ms: z.number().nullable(),
    cpu_ms: z.number().nullable(),
    cpu_ms_while_still: z.number().nullable(),
    heap_bytes: z.number().nullable(),
    external_bytes: z.number().nullable(),
    in_flight: inFlight,
    in_flight_count: z.number().int(),
    steps: z.array(
      z.object({
        at: z.string(),
        kind: z.enum(['request', 'call', 'event', 'job']),
        name: z.string(),
        id: z.string().nullable(),
        duration_ms: z.number().nullable(),
        success: z.boolean(),
      }),
    ),
  }),
  /** The process before this one has died, by the guardian's crash report. The runtime itself publishes it, once it serves again. */
  'runtime.process.died': z.object({
    signal: z.string().nullable(),
    code: z.number().int().nullable(),
    message: z.string(),
    guilty,
    in_flight: inFlight,
  }),
  /** Somebody has changed something from outside: through a route under `/system`, or by a signal. */
  'runtime.operator.acted': z.object({
    action: z.enum([
      'dead_letter.replay',
      'dead_letter.replay_many',
      'dead_letter.edit',
      'dead_letter.delete',
      'delivery.run',
      'event.cancel',
      'event.publish',
      'job.run',
      'queue.pause',
      'queue.resume',
      'reload',
    ]),
    /** What it was done to: the id of a dead letter or an event, the name of an event or a job, with its subscriber for a queue. */
    target: z.string().nullable(),
    by: z.enum(['token', 'read-token', 'anyone', 'signal']),
    /** Of the client; null for a signal. */
    address: z.string().nullable(),
    at: z.string(),
  }),
} satisfies EventContracts

export default contracts

declare module '#heddle' {
  interface Events extends PayloadsOf<typeof contracts> {}
}
