// The threads of this process that read streams.
import type { BlackBox } from '../../contracts/registry.ts'
import { retryWhile } from '../../runtime/streams/publisher.ts'
import type { SubscriptionManifest } from '../../transport/messages.ts'
import type { Claimer } from './claimer.ts'
import type { GroupProvisioner } from './group-provisioner.ts'
import {
  groupKey,
  type ReaderLink,
  type ReaderWakeups,
  ReadingThread,
  type StreamGroup,
  type Subscriber,
  streamGroupsOf,
} from './reading-thread.ts'

/** Before a claim that has failed is tried again, milliseconds. */
const RETRY_MS = 500
/** The last read of a thread may reach the store so long after the thread is gone, milliseconds: nobody handles the entries that it gets. */
const LATE_MS = 60_000

/**
 * Threads of this process that are gone. No new thread reads under the name of one until the hub has claimed its entries, and a while
 * longer: entries of a consumer that reads count as handled, so those that arrive late would never be claimed.
 */
export class DeadConsumers {
  readonly #claimer: Claimer
  readonly #mayTakeOver: () => boolean
  readonly #threads = new Set<ReadingThread>()
  readonly #formerStreamGroups = new Map<string, StreamGroup>()

  /** @param mayTakeOver false when this process begins nothing any more */
  constructor(claimer: Claimer, mayTakeOver: () => boolean) {
    this.#claimer = claimer
    this.#mayTakeOver = mayTakeOver
  }

  get threads(): readonly ReadingThread[] {
    return [...this.#threads]
  }

  /** The groups that they have read, also when their names are free again: the hub may have entries of these groups until there are new readers. */
  get formerStreamGroups(): readonly StreamGroup[] {
    return [...this.#formerStreamGroups.values()]
  }

  /**
   * Claims the thread's pending entries for the hub. Once this process ends they stay where they are until all are given back.
   * @param streamGroups the shared groups that it has read
   * @param blackBox null when it was told to end
   */
  async add(thread: ReadingThread, streamGroups: readonly StreamGroup[], blackBox: BlackBox | null): Promise<void> {
    this.#threads.add(thread)
    for (const streamGroup of streamGroups)
      this.#formerStreamGroups.set(groupKey(streamGroup.stream, streamGroup.group), streamGroup)
    for (const { stream, group } of streamGroups) {
      const claim = (): Promise<number> => this.#claimer.claimFromConsumer(stream, group, thread.consumer, blackBox)
      await retryWhile(this.#mayTakeOver, claim, { pauseMs: RETRY_MS })
    }
    if (this.#mayTakeOver()) setTimeout(() => this.#threads.delete(thread), LATE_MS).unref()
  }
}

/** A lane as its primary sees it. */
export interface StreamLane extends ReaderLink {
  readonly index: number
}

/** It is set aside, or stands still in the lanes. */
export type PauseReason = 'disabled' | 'stalling'

interface ReadingThreadsOptions {
  /** REPLICA_ID. */
  replica: string
  /** How many lanes there are: a number from here on is used while a lane's own is taken. */
  lanes: number
  /** The connection to the primary's own reader. */
  own: ReaderLink
  wakeups: ReaderWakeups
  groups: GroupProvisioner
  deadConsumers: DeadConsumers
}

/** The threads of this process that read, the primary included: their consumers, their groups, and the commands to them. */
export class ReadingThreads {
  readonly #options: ReadingThreadsOptions
  /** The primary's own reader. */
  readonly own: ReadingThread
  readonly #lanes = new Set<ReadingThread>()
  /** By why they are. */
  readonly #paused = { disabled: new Set<string>(), stalling: new Set<string>() }

  constructor(options: ReadingThreadsOptions) {
    this.#options = options
    const { own, replica } = options
    this.own = new ReadingThread('primary', replica, own)
  }

  // ── who reads ─────────────────────────────────────────────────────────────

  get #all(): ReadingThread[] {
    return [this.own, ...this.#lanes]
  }

  /** The consumers that these threads read as. */
  consumers(): string[] {
    return this.#all.map(({ consumer }) => consumer)
  }

  /** The consumers of threads that have gone a short time ago: they may still have pending entries. */
  deadConsumers(): string[] {
    return this.#options.deadConsumers.threads.map(({ consumer }) => consumer)
  }

  isReading(consumer: string): boolean {
    return this.#all.some((thread) => thread.consumer === consumer)
  }

  /** The groups that are read, each once. */
  streamGroups(): StreamGroup[] {
    return streamGroupsOf(this.#all)
  }

  /** The groups that are read, and those that may have pending entries although no thread reads them at the moment. */
  pendingStreamGroups(): StreamGroup[] {
    return streamGroupsOf(this.#all, this.#options.deadConsumers.formerStreamGroups)
  }

  /** True when all threads read, with the groups that they had at the beginning. */
  get areStarted(): boolean {
    return this.#all.every(({ isStarted }) => isStarted)
  }

  get areStopped(): boolean {
    return this.#all.every(({ isStopped }) => isStopped)
  }

  // ── what they read ────────────────────────────────────────────────────────

  /** All threads may read from now on, those to come included. */
  start(): void {
    for (const thread of this.#all) void this.#begin(thread)
  }

  async #begin(thread: ReadingThread): Promise<void> {
    const { groups } = this.#options
    const { disabled, stalling } = this.#paused
    for (const plugin of [...disabled, ...stalling]) thread.link.send({ kind: 'pause', plugin, isPaused: true })
    thread.link.send({ kind: 'start', consumer: thread.consumer })
    thread.hasBegun = true
    await Promise.all(thread.streamGroups.map((streamGroup) => groups.open(thread, streamGroup)))
    thread.isStarted = true
  }

  /** @param addInstance gives the subscriber its instance in the hub; called when its group gets all that is published from then on */
  subscribe(thread: ReadingThread, subscriber: Subscriber, addInstance: () => void = () => {}): void {
    const streamGroup = thread.add(subscriber)
    if (thread.hasBegun) void this.#options.groups.open(thread, streamGroup, addInstance)
    else addInstance()
  }

  unsubscribe(thread: ReadingThread, subscriberIndex: number): void {
    const { wakeups, groups } = this.#options
    const streamGroup = thread.remove(subscriberIndex)
    if (streamGroup === null) return
    wakeups.remove(thread, streamGroup.event, streamGroup.group)
    if (streamGroup.isBroadcast) groups.destroy(streamGroup)
  }

  /** The hub has as many entries of a group as it takes: the readers leave the rest in the stream. Or they go on. */
  hold(stream: string, group: string, isHeld: boolean): void {
    for (const thread of this.#all) {
      const streamGroup = thread.find(stream, group)
      if (streamGroup === undefined) continue
      thread.hold(streamGroup, isHeld)
      if (!isHeld) this.#options.wakeups.wakeSoon(streamGroup.event, group)
    }
  }

  pause(plugin: string, isPaused: boolean, why: PauseReason = 'disabled'): void {
    const { disabled, stalling } = this.#paused
    if (isPaused) this.#paused[why].add(plugin)
    else this.#paused[why].delete(plugin)
    if (!isPaused && (disabled.has(plugin) || stalling.has(plugin))) return
    for (const { link } of this.#all) link.send({ kind: 'pause', plugin, isPaused })
    if (!isPaused) this.#options.wakeups.wakeAll()
  }

  stop(): void {
    for (const { link } of this.#all) link.send({ kind: 'stop' })
  }

  // ── lanes ─────────────────────────────────────────────────────────────────

  /** A lane has booted. It reads as the consumer of its number, or of a free number while another thread still has that one. */
  laneUp(
    lane: StreamLane,
    subscriptions: readonly (SubscriptionManifest & { subscriberIndex: number })[],
  ): ReadingThread {
    const { deadConsumers, lanes, replica } = this.#options
    const taken = new Set([...this.#lanes, ...deadConsumers.threads].map(({ thread }) => thread))
    let number = lane.index
    for (let next = lanes; taken.has(number); next++) number = next
    const thread = new ReadingThread(number, replica, lane)
    this.#lanes.add(thread)
    for (const subscription of subscriptions) thread.add(subscription)
    if (this.own.hasBegun) void this.#begin(thread)
    return thread
  }

  /** The loop of a lane stands still: others read its groups meanwhile. */
  laneStill(thread: ReadingThread): void {
    this.#options.wakeups.standsStill(thread)
  }

  /** A lane gets no more events, and ends when it has no pending entries. */
  laneLeaving(thread: ReadingThread): void {
    this.#options.wakeups.gone(thread)
    thread.link.send({ kind: 'stop' })
  }

  /** A lane is gone: its pending entries go to the hub. @param blackBox null when it was told to end */
  laneGone(thread: ReadingThread, blackBox: BlackBox | null): void {
    const { wakeups, groups, deadConsumers } = this.#options
    this.#lanes.delete(thread)
    wakeups.gone(thread)
    // Without its groups, nothing more is opened for it.
    const streamGroups = thread.removeAll()
    for (const streamGroup of streamGroups) if (streamGroup.isBroadcast) groups.destroy(streamGroup)
    void deadConsumers.add(
      thread,
      streamGroups.filter(({ isBroadcast }) => !isBroadcast),
      blackBox,
    )
  }
}
