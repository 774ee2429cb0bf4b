// Events that the runtime itself publishes, as `runtime.lane.died`.
import type { Awaitable } from '../../contracts/common.ts'
import { NO_CAUSE } from '../../core/causality/context.ts'
import { messageOf } from '../../core/errors/description.ts'
import { encodePayload, publicationOf } from '../../runtime/events/publication.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { Log } from '../logging/process-log.ts'

/** Publishes an event of the runtime itself. What prevents that is logged. @param publish takes an event, or throws */
export function publishOwn(
  emitter: string,
  event: string,
  payload: Record<string, unknown>,
  publish: (event: EventFrame) => Awaitable<void>,
  log: Log,
): void {
  const unpublished = (error: unknown): void =>
    log('WARNING', `${event} was not published: ${messageOf(error)}`, emitter)
  try {
    const { json, keys } = encodePayload(event, payload)
    publish(publicationOf(emitter, event, json, keys, {}, NO_CAUSE))?.catch(unpublished)
  } catch (error) {
    unpublished(error)
  }
}
