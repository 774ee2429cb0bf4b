import type { BlackBox } from '../../contracts/registry.ts'
import type { ThreadStreams } from '../../runtime/streams/thread-streams.ts'
import type { SubscriptionManifest, ToLane } from '../../transport/messages.ts'
import type { Seat } from '../events/consumer.ts'
import type { Orphans } from './dead-consumers.ts'
import type { GroupOpener } from './group-provisioner.ts'
import type { Sleepers } from './reader-wakeups.ts'
import { pairsOf, ReadingThread, type Told } from './reading-thread.ts'
import type { Pair, Subscriber } from './stream-group.ts'

/** A lane as its primary sees it. */
export interface StreamLane {
  readonly index: number
  /** False while its loop stands still, or it takes no more work. */
  readonly isResponsive: boolean
  post(message: ToLane): void
  /** The hub's seat of one of its subscribers. */
  seatOf(local: number): Seat | null
}

export interface ReadingThreadsOptions {
  /** REPLICA_ID. */
  replica: string
  /** How many lanes there are: consumers are numbered on from here. */
  lanes: number
  own: ThreadStreams
  sleepers: Sleepers
  groups: GroupOpener
  orphans: Orphans
}

/** The threads of this process that read, its primary among them: who they are, what for they read, and what they are told. */
export class ReadingThreads {
  readonly #options: ReadingThreadsOptions
  /** The primary's own. */
  readonly own: ReadingThread
  readonly #lanes = new Map<StreamLane, ReadingThread>()
  readonly #paused = new Set<string>()

  constructor(options: ReadingThreadsOptions) {
    this.#options = options
    const { own, replica } = options
    const tellOwn: Told = {
      start: (consumer) => own.start(consumer),
      wake: (event) => own.wake(event),
      open: ({ event, group }) => own.open(event, group),
      hold: ({ event, group }, isHeld) => own.hold(event, group, isHeld),
      pause: (plugin, isPaused) => own.pause(plugin, isPaused),
      stop: () => {
        void own.stop().then(() => {
          this.own.isStopped = true
        })
      },
    }
    this.own = new ReadingThread('primary', replica, () => true, tellOwn)
  }

  // ── who reads ─────────────────────────────────────────────────────────────

  get #all(): ReadingThread[] {
    return [this.own, ...this.#lanes.values()]
  }

  /** Undefined for a lane that is gone, or reads nothing. */
  of(lane: StreamLane): ReadingThread | undefined {
    return this.#lanes.get(lane)
  }

  /** As these they read: what these have in hand is being worked at. */
  consumers(): string[] {
    return this.#all.map(({ consumer }) => consumer)
  }

  /** As these those have read that have just gone: something of theirs may still be in hand. */
  orphans(): string[] {
    return this.#options.orphans.threads.map(({ consumer }) => consumer)
  }

  isReading(consumer: string): boolean {
    return this.#all.some((thread) => thread.consumer === consumer)
  }

  /** What they read, each pair once. */
  pairs(): Pair[] {
    return pairsOf(this.#all)
  }

  /** These, and those of which something may be in hand although no thread reads them at the moment. */
  heldPairs(): Pair[] {
    return pairsOf(this.#all, this.#options.orphans.formerPairs)
  }

  /** All read, and have the groups that they had from the beginning. */
  get areStarted(): boolean {
    return this.#all.every(({ isStarted }) => isStarted)
  }

  get areStopped(): boolean {
    return this.#all.every(({ isStopped }) => isStopped)
  }

  // ── what they read ────────────────────────────────────────────────────────

  /** They may read, from now on and whoever comes. */
  start(): void {
    for (const thread of this.#all) void this.#begin(thread)
  }

  async #begin(thread: ReadingThread): Promise<void> {
    const { groups } = this.#options
    for (const plugin of this.#paused) thread.tell.pause(plugin, true)
    thread.tell.start(thread.consumer)
    thread.hasBegun = true
    await Promise.all(thread.pairs.map((pair) => groups.open(thread, pair)))
    thread.isStarted = true
  }

  /** @param seat gives it its seat in the hub: when its group is there, so that what is published from then on is its */
  subscribe(thread: ReadingThread, subscriber: Subscriber, seat: () => void = () => {}): void {
    const pair = thread.add(subscriber)
    if (thread.hasBegun) void this.#options.groups.open(thread, pair, seat)
    else seat()
  }

  unsubscribe(thread: ReadingThread, local: number): void {
    const { sleepers, groups } = this.#options
    const pair = thread.remove(local)
    if (pair === null) return
    sleepers.remove(thread, pair.event, pair.group)
    if (pair.isBroadcast) groups.destroy(pair)
  }

  /** The hub has as much of a group as it takes: its readers leave the rest in the stream. Or they go on. */
  hold(stream: string, group: string, isHeld: boolean): void {
    for (const thread of this.#all) {
      const pair = thread.find(stream, group)
      if (pair === undefined) continue
      thread.tell.hold(pair, isHeld)
      if (!isHeld) this.#options.sleepers.owe(pair.event, group)
    }
  }

  pause(plugin: string, isPaused: boolean): void {
    if (isPaused) this.#paused.add(plugin)
    else this.#paused.delete(plugin)
    for (const thread of this.#all) thread.tell.pause(plugin, isPaused)
    if (!isPaused) this.#options.sleepers.wakeAll()
  }

  stop(): void {
    for (const thread of this.#all) thread.tell.stop()
  }

  // ── lanes ─────────────────────────────────────────────────────────────────

  /** It may read as the consumer of its number, or of a free one while another thread still has that. */
  laneUp(lane: StreamLane, subscriptions: readonly (SubscriptionManifest & { local: number })[]): void {
    const { orphans, lanes, replica } = this.#options
    const taken = new Set([...this.#lanes.values(), ...orphans.threads].map(({ thread }) => thread))
    let number = lane.index
    for (let next = lanes; taken.has(number); next++) number = next
    const thread = new ReadingThread(number, replica, () => lane.isResponsive, {
      start: (consumer) => lane.post({ type: 'stream-start', consumer }),
      wake: (event) => lane.post({ type: 'stream-wake', event }),
      open: ({ event, group }) => lane.post({ type: 'stream-open', event, group }),
      hold: ({ event, group }, isHeld) => lane.post({ type: 'stream-hold', event, group, isHeld }),
      pause: (plugin, isPaused) => lane.post({ type: 'stream-pause', plugin, isPaused }),
      stop: () => lane.post({ type: 'stream-stop' }),
    })
    this.#lanes.set(lane, thread)
    for (const subscription of subscriptions) thread.add(subscription)
    if (this.own.hasBegun) void this.#begin(thread)
  }

  /** A lane gets nothing more, and ends when it has nothing in hand. */
  laneLeaving(lane: StreamLane): void {
    const thread = this.#lanes.get(lane)
    if (thread === undefined) return
    this.#options.sleepers.gone(thread)
    thread.tell.stop()
  }

  /** A lane is gone. What it had in hand goes to the hub. @param blackBox null when it was told to end */
  laneGone(lane: StreamLane, blackBox: BlackBox | null): void {
    const { sleepers, groups, orphans } = this.#options
    const thread = this.#lanes.get(lane)
    if (thread === undefined) return
    this.#lanes.delete(lane)
    sleepers.gone(thread)
    // It opens nothing any more.
    const pairs = thread.removeAll()
    for (const pair of pairs) if (pair.isBroadcast) groups.destroy(pair)
    void orphans.inherit(
      thread,
      pairs.filter(({ isBroadcast }) => !isBroadcast),
      blackBox,
    )
  }
}
