// What only the primary knows or does, and a lane asks it for by name.

import type { Awaitable } from '../../contracts/common.ts'
import type { HubServices } from '../../contracts/event-bus.ts'
import type { ProcessServices } from '../../contracts/tool.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { EventRequest } from '../../transport/messages.ts'

/** Of the hub and the event store. */
export interface EventServices extends HubServices {
  /** Makes a request for a lane, whose handler is the cause. @returns the reply's JSON text */
  requestFor(request: EventRequest, timeoutMs: number): Promise<string>
  /** Publishes an event with `unique` where no database can store it. @returns its id, or the id of the one that is there */
  publishUnique(frame: EventFrame): Awaitable<string>
  /** @param keys as `encodePayload` gives them */
  editLetter(id: string, json: string, keys: string): Awaitable<boolean>
}

export type LaneServices = ProcessServices & EventServices

/** The services as a lane has them. @param call hands a call to the primary: arguments and result are JSON */
export function servicesOver(call: (method: string, args: unknown[]) => Promise<unknown>): LaneServices {
  const get =
    (_: object, method: string) =>
    (...args: unknown[]): Promise<unknown> =>
      call(method, args)
  return new Proxy({}, { get }) as LaneServices
}

/** Answers a call of a lane. @param services each an own property @throws INTERNAL when there is no such service */
export function serve(services: LaneServices, method: string, args: unknown[]): unknown {
  if (!Object.hasOwn(services, method)) throw new HeddleError('INTERNAL', `The primary has no service ${method}`)
  return (services[method as keyof LaneServices] as (...args: unknown[]) => unknown)(...args)
}
