import type { SubscribeOptions } from '../../contracts/event-bus.ts'
import { broadcastGroupOf, groupOf, streamOf } from '../../runtime/streams/keys.ts'

/** One group of one stream that this process reads. */
export interface StreamGroup {
  readonly event: string
  readonly stream: string
  readonly group: string
  /** It is one thread's own. */
  readonly isBroadcast: boolean
}

/** Such a group as one subscriber of a thread has it. */
export interface OwnStreamGroup extends StreamGroup {
  /** The subscriber's number in its thread. */
  readonly subscriberIndex: number
}

/** A subscriber, as its thread names it. */
export interface Subscriber {
  /** Its number in its thread. */
  readonly subscriberIndex: number
  readonly event: string
  /** The group when its options name none. */
  readonly identity: string
  readonly options: SubscribeOptions
}

export const groupKey = (stream: string, group: string): string => `${stream} ${group}`

/** @param consumer the thread's */
export function streamGroupOf(
  { subscriberIndex, event, identity, options }: Subscriber,
  consumer: string,
): OwnStreamGroup {
  const name = options.group ?? identity
  const isBroadcast = options.broadcast === true
  const group = isBroadcast ? broadcastGroupOf(name, consumer) : groupOf(name)
  return { subscriberIndex, event, stream: streamOf(event), group, isBroadcast }
}
