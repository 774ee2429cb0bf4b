import { z } from 'zod'
import { guard, HeddleError, HttpError, plugin, type Tools } from '#heddle'
import { isProduction } from '../configuration.ts'
import { tellOperatorAct } from '../operator-acts.ts'

const body = z.object({
  event: z
    .string()
    .min(1)
    .meta({ description: 'Its name', examples: ['user.created'] }),
  payload: z.record(z.string(), z.unknown()).default({}),
})
const response = z.object({ success: z.literal(true), data: z.object({ id: z.string() }) })

/** Codes of the bus that say what is wrong with an event. */
const REFUSALS = new Set(['EVENT_CONTRACT', 'EVENT_NAME_INVALID', 'EVENT_PAYLOAD_INVALID', 'EVENT_PAYLOAD_TOO_LARGE'])

const CLOSED =
  'Closed in production: events are published by hand where it was started with npm run dev or NODE_ENV=development'

/** Publishes an event that somebody has typed: to try its subscribers. Nobody can in production. */
export default plugin(
  ({ config, event_bus, http, logger }) => {
    http.post(
      '/system/events/publish',
      {
        body,
        response,
        // Before anybody looks at the body.
        guards: isProduction(config) ? [refuse] : [],
        throws: { 422: 'The event is not published: its name or its payload is refused' },
        tags: ['system'],
        summary: 'Publishes an event',
        description: 'To try its subscribers. Not in production.',
      },
      async ({ event, payload }, context) => {
        if (event.startsWith('_')) throw new HttpError(422, 'Events whose name begins with _ are internal')
        const id = await published(event_bus, event, payload)
        await tellOperatorAct({ event_bus, logger }, { action: 'event.publish', target: event }, context)
        return { success: true as const, data: { id } }
      },
    )
  },
  { thread: 'primary' },
)

/** @throws HttpError that says why the bus refuses it */
async function published(bus: Tools['event_bus'], event: string, payload: Record<string, unknown>): Promise<string> {
  try {
    return await bus.publish(event, payload)
  } catch (error) {
    if (!(error instanceof HeddleError) || !REFUSALS.has(error.code)) throw error
    throw new HttpError(422, error.message, { details: error.details })
  }
}

/** It says how to open it, as the assistants do. */
const refuse = guard({ 404: CLOSED }, () => {
  throw new HttpError(404, CLOSED)
})
