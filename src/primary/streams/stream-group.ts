import type { SubscribeOptions } from '../../contracts/event-bus.ts'
import { broadcastGroupOf, groupOf, streamOf } from '../../runtime/streams/keys.ts'

/** One group of one stream that this process reads. */
export interface StreamGroup {
  readonly event: string
  readonly stream: string
  readonly group: string
  /** True for a group of one thread alone. */
  readonly isBroadcast: boolean
}

/** The group of one subscriber of a thread. */
export interface OwnStreamGroup extends StreamGroup {
  /** The subscriber's index in its thread. */
  readonly subscriberIndex: number
}

/** A subscriber of a thread. */
export interface Subscriber {
  /** Its index in its thread. */
  readonly subscriberIndex: number
  readonly event: string
  /** The name of its group when its options have none. */
  readonly identity: string
  readonly options: SubscribeOptions
}

export const groupKey = (stream: string, group: string): string => `${stream} ${group}`

/** @param consumer of the thread */
export function streamGroupOf(
  { subscriberIndex, event, identity, options }: Subscriber,
  consumer: string,
): OwnStreamGroup {
  const name = options.group ?? identity
  const isBroadcast = options.broadcast === true
  const group = isBroadcast ? broadcastGroupOf(name, consumer) : groupOf(name)
  return { subscriberIndex, event, stream: streamOf(event), group, isBroadcast }
}
