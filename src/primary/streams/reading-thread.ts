import { consumerOf } from '../../runtime/streams/keys.ts'
import type { StreamCommand } from '../../transport/stream-messages.ts'
import type { SubscriberInstance } from '../events/consumer.ts'
import type { Reader } from './reader-wakeups.ts'
import { groupKey, type OwnStreamGroup, type StreamGroup, type Subscriber, streamGroupOf } from './stream-group.ts'

/** The connection of the coordinator to a thread that reads. */
export interface ReaderLink {
  /** False while its loop stands still, or it takes no more work. */
  readonly isResponsive: boolean
  send(command: StreamCommand): void
  /** The hub's instance of one of its subscribers. */
  instanceOf(subscriberIndex: number): SubscriberInstance | null
  /** Told when it has stopped reading and has no pending entries. */
  stopped(): void
}

/** A thread that reads: its consumer's name and its groups. */
export class ReadingThread implements Reader {
  readonly thread: number | 'primary'
  readonly consumer: string
  readonly link: ReaderLink
  readonly #streamGroups: OwnStreamGroup[] = []
  /** True when its groups are being opened, or are open: a group that comes later is opened at once. */
  hasBegun = false
  /** True when all groups are open that it had at the beginning. */
  isStarted = false
  isStopped = false

  constructor(thread: number | 'primary', replica: string, link: ReaderLink) {
    this.thread = thread
    this.consumer = consumerOf(replica, thread)
    this.link = link
  }

  get isResponsive(): boolean {
    return this.link.isResponsive
  }
  wake(event: string): void {
    this.link.send({ kind: 'wake', event })
  }
  hold({ event, group }: StreamGroup, isHeld: boolean): void {
    this.link.send({ kind: 'hold', event, group, isHeld })
  }

  /** One group for each of its subscribers. */
  get streamGroups(): readonly OwnStreamGroup[] {
    return this.#streamGroups
  }

  add(subscriber: Subscriber): OwnStreamGroup {
    const streamGroup = streamGroupOf(subscriber, this.consumer)
    this.#streamGroups.push(streamGroup)
    return streamGroup
  }

  /** @returns the group when no subscriber of this thread is left for it */
  remove(subscriberIndex: number): StreamGroup | null {
    const at = this.#streamGroups.findIndex((streamGroup) => streamGroup.subscriberIndex === subscriberIndex)
    if (at < 0) return null
    const [streamGroup] = this.#streamGroups.splice(at, 1)
    return this.find(streamGroup!.stream, streamGroup!.group) === undefined ? streamGroup! : null
  }

  /** Takes away all its groups. */
  removeAll(): OwnStreamGroup[] {
    return this.#streamGroups.splice(0)
  }

  find(stream: string, group: string): OwnStreamGroup | undefined {
    return this.#streamGroups.find((streamGroup) => streamGroup.stream === stream && streamGroup.group === group)
  }
}

/** The groups of these threads and those others, each once. */
export function streamGroupsOf(threads: readonly ReadingThread[], others: Iterable<StreamGroup> = []): StreamGroup[] {
  const streamGroups = new Map<string, StreamGroup>()
  for (const streamGroup of others) streamGroups.set(groupKey(streamGroup.stream, streamGroup.group), streamGroup)
  for (const thread of threads)
    for (const streamGroup of thread.streamGroups)
      streamGroups.set(groupKey(streamGroup.stream, streamGroup.group), streamGroup)
  return [...streamGroups.values()]
}
