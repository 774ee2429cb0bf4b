import { consumerOf } from '../../runtime/streams/keys.ts'
import type { Reading } from './reader-wakeups.ts'
import { groupKey, type OwnStreamGroup, type StreamGroup, type Subscriber, streamGroupOf } from './stream-group.ts'

/** What a thread that reads is told. */
export interface Told {
  /** It may read, as this consumer. */
  start(consumer: string): void
  wake(event: string): void
  open(streamGroup: StreamGroup): void
  hold(streamGroup: StreamGroup, isHeld: boolean): void
  pause(plugin: string, isPaused: boolean): void
  /** It reads nothing more, and says so when it has nothing in hand: `isStopped`. */
  stop(): void
}

/** A thread that reads: as which consumer, and what for. */
export class ReadingThread implements Reading {
  readonly thread: number | 'primary'
  readonly consumer: string
  readonly tell: Told
  readonly #streamGroups: OwnStreamGroup[] = []
  readonly #isResponsive: () => boolean
  /** Its groups are being opened, or are: one that comes later is opened at once. */
  hasBegun = false
  /** It reads, and all groups that it had from the beginning are there. */
  isStarted = false
  isStopped = false

  constructor(thread: number | 'primary', replica: string, isResponsive: () => boolean, tell: Told) {
    this.thread = thread
    this.consumer = consumerOf(replica, thread)
    this.#isResponsive = isResponsive
    this.tell = tell
  }

  get isResponsive(): boolean {
    return this.#isResponsive()
  }
  wake(event: string): void {
    this.tell.wake(event)
  }

  /** One for each of its subscribers. */
  get streamGroups(): readonly OwnStreamGroup[] {
    return this.#streamGroups
  }

  add(subscriber: Subscriber): OwnStreamGroup {
    const streamGroup = streamGroupOf(subscriber, this.consumer)
    this.#streamGroups.push(streamGroup)
    return streamGroup
  }

  /** @returns the streamGroup when nobody here is left for it */
  remove(local: number): StreamGroup | null {
    const at = this.#streamGroups.findIndex((streamGroup) => streamGroup.local === local)
    if (at < 0) return null
    const [streamGroup] = this.#streamGroups.splice(at, 1)
    return this.find(streamGroup!.stream, streamGroup!.group) === undefined ? streamGroup! : null
  }

  /** It has none any more. */
  removeAll(): OwnStreamGroup[] {
    return this.#streamGroups.splice(0)
  }

  find(stream: string, group: string): OwnStreamGroup | undefined {
    return this.#streamGroups.find((streamGroup) => streamGroup.stream === stream && streamGroup.group === group)
  }
}

/** Each streamGroup once. */
export function streamGroupsOf(threads: readonly ReadingThread[], others: Iterable<StreamGroup> = []): StreamGroup[] {
  const streamGroups = new Map<string, StreamGroup>()
  for (const streamGroup of others) streamGroups.set(groupKey(streamGroup.stream, streamGroup.group), streamGroup)
  for (const thread of threads)
    for (const streamGroup of thread.streamGroups)
      streamGroups.set(groupKey(streamGroup.stream, streamGroup.group), streamGroup)
  return [...streamGroups.values()]
}
