import type { Settings } from '../config/schema.ts'
import type { SubscribeOptions } from '../contracts/event-bus.ts'
import type { LogLevel } from '../contracts/logger.ts'
import type { BlackBox } from '../contracts/registry.ts'
import type { DeliveryTracing } from '../contracts/tracing.ts'
import { HeddleError } from '../errors/catalogue.ts'
import { messageOf, type WireError } from '../errors/wire.ts'
import type { EventHost, Seat } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { EventFrame } from '../frames/event-frame.ts'
import type { StreamHandOver, SubscriptionManifest, ToLane, ToPrimary } from '../lanes/messages.ts'
import { openRedis, type RedisClient } from '../redis/client.ts'
import { Adoptions } from './adoptions.ts'
import { Custody } from './custody.ts'
import { StreamDeadLetters } from './dead-letters.ts'
import { DelayedEvents } from './delayed.ts'
import { GroupOpener } from './group-opener.ts'
import { KeyGate } from './key-gate.ts'
import { consumerOf, replicaOfConsumer, streamOf } from './keys.ts'
import { type Pair, pairKey, ReadingThread } from './reading-thread.ts'
import { ReplicaLock } from './replica-lock.ts'
import { Replies } from './replies.ts'
import { StreamCommands } from './stream-commands.ts'
import { StreamDriver } from './stream-driver.ts'
import { StreamWatch, WATCH_MS } from './stream-watch.ts'
import { Takeover } from './takeover.ts'
import { ThreadStreams } from './thread-streams.ts'
import { shownTrimReport } from './trim-report.ts'
import { Trimmer } from './trimmer.ts'
import { Upkeep } from './upkeep.ts'

/** Before something that the store refused is tried again, milliseconds. */
const RETRY_MS = 500
/** Events of one group, and characters of their payloads, that the hub takes on: beyond, they stay in the stream. */
const HOLD_AT = 1000
const HOLD_AT_CHARS = 32 << 20
/** Events of other replicas whose record is not made twice, though several groups here get them. */
const RECEIVED_KEPT = 1000

/** A lane as the steward sees it. */
export interface StreamLane {
  readonly index: number
  /** False while its loop stands still, or it takes no more work. */
  readonly isResponsive: boolean
  post(message: ToLane): void
  /** The hub's seat of one of its subscribers. */
  seatOf(local: number): Seat | null
}

export interface StewardOptions {
  settings: Settings
  hub: Hub
  /** Of the primary's own subscribers. */
  ownSeat: (local: number) => Seat | null
  /** Begins a delivery at one of them. */
  serve: (deliveryId: number, frame: EventFrame) => void
  /** Another process has this REPLICA_ID by now: this one must end. */
  onReplicaLost: (message: string) => void
  /** Null while tracing is off. */
  tracing: DeliveryTracing | null
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/**
 * The streams of one process, in its primary: it says who reads as which consumer and wakes them, renews what they have in hand,
 * and takes over what nobody has any more. The events themselves pass it by.
 */
export class StreamSteward {
  readonly #options: StewardOptions
  readonly #redis: RedisClient
  readonly #blocking: RedisClient
  readonly #listening: RedisClient
  readonly #own: ThreadStreams
  readonly #commands: StreamCommands
  readonly #watch: StreamWatch
  readonly #lock: ReplicaLock
  readonly #letters: StreamDeadLetters
  readonly driver: StreamDriver
  readonly #delayed: DelayedEvents
  readonly #replies: Replies
  readonly #gate: KeyGate
  readonly #adoptions: Adoptions
  readonly #takeover: Takeover
  readonly #upkeep: Upkeep
  readonly #trimmer: Trimmer
  readonly #ownReader: ReadingThread
  readonly #lanes = new Map<StreamLane, ReadingThread>()
  /** Consumers whose thread has gone, and whose entries are not taken over yet. */
  readonly #orphans = new Set<ReadingThread>()
  /** What lanes that have gone have read: the hub may have something of it in hand until there are new ones. */
  readonly #former = new Map<string, Pair>()
  readonly #groups: GroupOpener
  /** Pairs of which the hub has as much as it takes. */
  readonly #held = new Set<string>()
  readonly #custody: Custody
  readonly #received = new Set<string>()
  readonly #paused = new Set<string>()
  #isUp = false
  /** Another process has this one's name. */
  #isLost = false
  /** Why the store does not let this process begin, though it answers. */
  #upFault: string | null = null
  #wasOpen = false
  #isStopping = false
  #isClosed = false

  constructor(options: StewardOptions) {
    this.#options = options
    const { settings, log, hub } = options
    const { replicaId } = settings
    const name = (role: string): string => `heddle:${replicaId}:${role}`
    this.#own = new ThreadStreams({
      settings,
      role: 'primary',
      serve: options.serve,
      received: (frame) => this.noteRecord(frame, null, true),
      tracing: options.tracing,
      published: () => {},
      delayed: (delayMs) => this.#delayed.poke(delayMs),
      handOver: (taken) => this.#adoptions.takeOn(taken, this.#ownReader.consumer, options.ownSeat(taken.local)),
      idle: (event, upTo) => this.#watch.idle(this.#ownReader, event, upTo),
      more: (event) => this.#watch.more(this.#ownReader, event),
      full: (event, isFull) => this.#watch.full(this.#ownReader, event, isFull),
      log,
    })
    this.#redis = this.#own.redis
    this.#commands = new StreamCommands(this.#redis)
    this.#blocking = openRedis(settings, { name: name('watch'), blockingMs: WATCH_MS, log: QUIET })
    this.#listening = openRedis(settings, { name: name('replies'), log: QUIET })
    this.#watch = new StreamWatch(this.#blocking, this.#redis)
    this.#ownReader = new ReadingThread('primary', replicaId, ALWAYS, {
      wake: (event) => this.#own.wake(event),
      open: ({ event, group }) => this.#own.open(event, group),
      hold: ({ event, group }, isHeld) => this.#own.hold(event, group, isHeld),
    })
    this.#lock = new ReplicaLock(this.#redis, replicaId, {
      onLost: ({ host, pid }) => {
        this.#isLost = true
        void this.#endReading()
        options.onReplicaLost(
          `Process ${pid} on ${host} has taken the REPLICA_ID ${replicaId} while this one stood still: give each replica a REPLICA_ID of its own`,
        )
      },
    })
    this.#letters = new StreamDeadLetters(this.#redis, {
      onCut: (letters) => log('WARNING', `The dead-letter store is full: the oldest ${letters} letters were dropped`),
    })
    this.#delayed = new DelayedEvents(this.#redis, { log })
    this.#replies = new Replies(this.#listening, replicaId)
    this.driver = new StreamDriver({
      redis: this.#redis,
      own: this.#own,
      replies: this.#replies,
      letters: this.#letters,
      published: (event, origin) => this.noteRecord(event, origin, false),
    })
    this.#gate = new KeyGate((stream, group, ids) => this.#commands.finished(stream, group, ids))
    const hubConsumer = consumerOf(replicaId, 'hub')
    this.#custody = new Custody((stream, group) => this.#lookWhetherHeld(stream, group))
    this.#adoptions = new Adoptions({
      redis: this.#redis,
      commands: this.#commands,
      hub,
      letters: this.#letters,
      custody: this.#custody,
      replica: replicaId,
      consumer: hubConsumer,
      onConfirmed: (stream, group, ids) => this.#gate.acknowledged(stream, group, ids),
      log,
    })
    this.#takeover = new Takeover({
      redis: this.#redis,
      hubConsumer,
      custody: this.#custody,
      gate: this.#gate,
      isAtWork: (consumer) => this.#readers().some((reader) => reader.consumer === consumer),
      adopt: (stream, entry, ...adoption) => {
        if (entry.replica !== replicaId) this.noteRecord(entry.frame, null, true)
        return this.#adoptions.adopt(stream, entry, ...adoption)
      },
      onForeign: (stream, group, id, why) => void this.#adoptions.keepForeign(stream, group, id, why),
      giveBack: (stream, group, id) => this.#adoptions.giveBack(stream, group, id),
    })
    this.#groups = new GroupOpener({
      redis: this.#redis,
      replica: replicaId,
      takeover: this.#takeover,
      mayOpen: () => !this.#isStopping && !this.#isLost,
      onOpen: (thread, pair) => {
        if (this.#held.has(pairKey(pair))) thread.hold(pair, true)
        thread.open(pair)
        this.#watch.add(thread, pair.event, pair.group)
      },
    })
    this.#upkeep = new Upkeep({
      redis: this.#redis,
      claimIdleMs: settings.eventBusClaimIdleMs,
      pairs: () => this.#pairs(),
      heldPairs: () => this.#pairs(this.#former),
      consumers: () => this.#readers().map(({ consumer }) => consumer),
      hubConsumer,
      custody: this.#custody,
      takeover: this.#takeover,
      mayTakeOver: (pair) => !this.#isStopping && !this.#isLost && !(pair && this.#held.has(pairKey(pair))),
      isOurs: () => !this.#isLost,
      log,
    })
    this.#trimmer = new Trimmer(this.#redis, {
      streams: () => Object.keys(hub.topology()).map(streamOf),
      report: (report) => log(...shownTrimReport(report)),
      isLeftOver: (consumer) =>
        replicaOfConsumer(consumer) === replicaId && !this.#readers().some((reader) => reader.consumer === consumer),
      maxLen: settings.eventBusStreamMaxlen,
    })
  }

  // ── start ─────────────────────────────────────────────────────────────────

  /**
   * Takes the name of this replica. When the store does not answer it goes on trying, and the process serves what it can.
   * @throws REPLICA_ID_TAKEN
   */
  async start(): Promise<void> {
    await this.#redis.opened
    try {
      await this.#takeUp()
    } catch (error) {
      if (isTaken(error)) throw error
      this.#refusedToBegin(error)
      void this.#takeUpLater()
    }
  }

  async #takeUp(): Promise<void> {
    await this.#lock.acquire()
    this.#isUp = true
    this.#upFault = null
    this.#own.start(this.#ownReader.consumer)
    // Before others look: after a long absence all that is in hand here looks left.
    this.#redis.onUp(() => void this.#upkeep.renew().catch(() => {}))
    this.#watch.start()
    this.#delayed.start()
    this.#upkeep.start()
    this.#trimmer.start()
    void this.#openAll(this.#ownReader)
    for (const [lane, reader] of this.#lanes) void this.#begin(lane, reader)
  }

  async #takeUpLater(): Promise<void> {
    while (!this.#isUp && !this.#isClosed) {
      await pause(RETRY_MS)
      try {
        await this.#takeUp()
      } catch (error) {
        if (isTaken(error)) return this.#options.onReplicaLost((error as Error).message)
        this.#refusedToBegin(error)
      }
    }
  }

  #refusedToBegin(error: unknown): void {
    const fault = messageOf(error)
    if (isUnavailable(error) || fault === this.#upFault) return
    this.#upFault = fault
    this.#options.log('ERROR', `The event streams cannot be used: ${fault}. Trying again until it works.`)
  }

  /** Why events do not flow; null when they do. */
  get fault(): string | null {
    if (this.#redis.fault !== null) return this.#redis.fault.message
    if (this.#isOpen) return null
    if (this.#upFault !== null) return this.#upFault
    return this.#groups.refusal ?? 'the groups of the event streams are not made yet'
  }

  /** All threads have been able to read, at some time: before, this process should get no traffic. */
  get wasOpen(): boolean {
    this.#wasOpen ||= this.#isOpen
    return this.#wasOpen
  }

  get #isOpen(): boolean {
    // The primary's plugins subscribe after it has begun.
    return this.#isUp && !this.#groups.isOpening && this.#readers().every(({ isStarted }) => isStarted)
  }

  /** Resolves when all that is there by now can read, or when it is known that the store does not answer, or not as it should. */
  async opened(): Promise<void> {
    const isHopeful = (): boolean =>
      this.#redis.fault === null && this.#groups.refusal === null && this.#upFault === null
    while (!this.wasOpen && isHopeful() && !this.#isClosed) await pause(5)
  }

  // ── threads ───────────────────────────────────────────────────────────────

  #readers(): ReadingThread[] {
    return [this.#ownReader, ...this.#lanes.values()]
  }

  #pairs(former: Iterable<[string, Pair]> = []): Pair[] {
    const pairs = new Map(former)
    for (const { pairs: own } of this.#readers()) for (const pair of own) pairs.set(pairKey(pair), pair)
    return [...pairs.values()]
  }

  /** A subscriber of the primary. */
  add(local: number, plugin: string, event: string, identity: string, options: SubscribeOptions): void {
    this.#own.add(local, plugin, event, identity, options)
    const pair = this.#ownReader.pairOf(local, event, identity, options)
    this.#ownReader.pairs.push(pair)
    if (this.#isUp) void this.#groups.open(this.#ownReader, pair)
  }
  remove(local: number): void {
    this.#own.remove(local)
    this.#leave(this.#ownReader, local)
  }
  delivered(deliveryId: number): void {
    this.#own.delivered(deliveryId)
  }
  reply(deliveryId: number, json: string): void {
    this.#own.reply(deliveryId, json)
  }
  failed(deliveryId: number, error: WireError): void {
    this.#own.failed(deliveryId, error)
  }

  /** A lane has booted: it may read as the consumer of its number, or of a free one while another thread still has that. */
  laneUp(lane: StreamLane, subscriptions: readonly (SubscriptionManifest & { local: number })[]): void {
    const taken = new Set([...this.#lanes.values(), ...this.#orphans].map(({ thread }) => thread))
    let number = lane.index
    for (let next = this.#options.settings.lanes; taken.has(number); next++) number = next
    const reader = new ReadingThread(number, this.#options.settings.replicaId, () => lane.isResponsive, {
      wake: (event) => lane.post({ type: 'stream-wake', event }),
      open: ({ event, group }) => lane.post({ type: 'stream-open', event, group }),
      hold: ({ event, group }, isHeld) => lane.post({ type: 'stream-hold', event, group, isHeld }),
    })
    this.#lanes.set(lane, reader)
    for (const { local, event, identity, options } of subscriptions) {
      reader.pairs.push(reader.pairOf(local, event, identity, options))
    }
    if (this.#isUp) void this.#begin(lane, reader)
  }

  /** Its groups first: an event that is published before they are there would not be theirs. */
  async #begin(lane: StreamLane, reader: ReadingThread): Promise<void> {
    for (const plugin of this.#paused) lane.post({ type: 'stream-pause', plugin, isPaused: true })
    lane.post({ type: 'stream-start', consumer: reader.consumer })
    await this.#openAll(reader)
  }

  async #openAll(reader: ReadingThread): Promise<void> {
    reader.hasBegun = true
    await Promise.all(reader.pairs.map((pair) => this.#groups.open(reader, pair)))
    reader.isStarted = true
  }

  /** @param seat gives it its seat in the hub: when its group is there, so that what is published from then on is its */
  laneSubscribed(
    lane: StreamLane,
    local: number,
    { event, identity, options }: SubscriptionManifest,
    seat: () => void,
  ): void {
    const reader = this.#lanes.get(lane)
    if (reader === undefined) return
    const pair = reader.pairOf(local, event, identity, options)
    reader.pairs.push(pair)
    if (reader.hasBegun) void this.#groups.open(reader, pair, seat)
    else seat()
  }

  laneUnsubscribed(lane: StreamLane, local: number): void {
    const reader = this.#lanes.get(lane)
    if (reader !== undefined) this.#leave(reader, local)
  }

  #leave(reader: ReadingThread, local: number): void {
    const at = reader.pairs.findIndex((pair) => pair.local === local)
    if (at < 0) return
    const [pair] = reader.pairs.splice(at, 1)
    if (reader.pairs.some((other) => pairKey(other) === pairKey(pair!))) return
    this.#watch.remove(reader, pair!.event, pair!.group)
    if (pair!.isBroadcast) this.#groups.destroy(pair!)
  }

  /** A lane gets nothing more, and ends when it has nothing in hand. */
  laneLeaving(lane: StreamLane): void {
    const reader = this.#lanes.get(lane)
    if (reader === undefined) return
    this.#watch.gone(reader)
    lane.post({ type: 'stream-stop' })
  }

  /** The hub has as much of a group as it takes: its readers leave the rest in the stream. */
  #lookWhetherHeld(stream: string, group: string): void {
    const key = `${stream} ${group}`
    const { count, chars } = this.#custody.sizeOf(stream, group)
    const isHeld = this.#held.has(key)
    if (isHeld === false && (count >= HOLD_AT || chars >= HOLD_AT_CHARS)) this.#held.add(key)
    else if (isHeld && count <= HOLD_AT / 2 && chars <= HOLD_AT_CHARS / 2) this.#held.delete(key)
    else return
    for (const reader of this.#readers()) {
      const pair = reader.pairs.find((own) => pairKey(own) === key)
      if (pair === undefined) continue
      reader.hold(pair, !isHeld)
      if (isHeld) this.#watch.owe(pair.event, group)
    }
  }

  /** Its loop stands still. */
  laneStill(lane: StreamLane): void {
    const reader = this.#lanes.get(lane)
    if (reader !== undefined) this.#watch.still(reader)
  }

  isBusy(lane: StreamLane): boolean {
    return this.#lanes.get(lane)?.isStopped === false
  }

  /** A lane is gone. What it had in hand goes to the hub. @param blackBox null when it was told to end */
  laneGone(lane: StreamLane, blackBox: BlackBox | null): void {
    const reader = this.#lanes.get(lane)
    if (reader === undefined) return
    this.#lanes.delete(lane)
    this.#watch.gone(reader)
    // It opens nothing any more.
    const pairs = reader.pairs.splice(0)
    for (const pair of pairs) if (!pair.isBroadcast) this.#former.set(pairKey(pair), pair)
    this.#orphans.add(reader)
    void this.#inherit(reader, pairs, blackBox)
  }

  /** Nothing any more once this process ends: then it stays an orphan until all is given back. */
  async #inherit(reader: ReadingThread, pairs: readonly Pair[], blackBox: BlackBox | null): Promise<void> {
    for (const pair of pairs) {
      if (pair.isBroadcast) this.#groups.destroy(pair)
      else {
        while (!this.#isStopping && !this.#isLost) {
          try {
            await this.#takeover.ofConsumer(pair.stream, pair.group, reader.consumer, blackBox)
            break
          } catch {
            await pause(RETRY_MS)
          }
        }
      }
    }
    if (!this.#isStopping) this.#orphans.delete(reader)
  }

  pausePlugin(plugin: string, isPaused: boolean): void {
    if (isPaused) this.#paused.add(plugin)
    else this.#paused.delete(plugin)
    this.#own.pause(plugin, isPaused)
    for (const lane of this.#lanes.keys()) lane.post({ type: 'stream-pause', plugin, isPaused })
    if (!isPaused) this.#watch.wakeAll()
  }

  /** What a lane says of its streams. */
  onMessage(lane: StreamLane, message: ToPrimary): void {
    const reader = this.#lanes.get(lane)
    if (reader === undefined) return
    switch (message.type) {
      case 'stream-idle':
        return this.#watch.idle(reader, message.event, message.upTo)
      case 'stream-more':
        return this.#watch.more(reader, message.event)
      case 'stream-full':
        return this.#watch.full(reader, message.event, message.isFull)
      case 'stream-delayed':
        return this.#delayed.poke(message.delayMs)
      case 'stream-hand-over':
        return this.#takeOn(lane, reader, message.handOver)
      case 'stream-stopped':
        reader.isStopped = true
    }
  }

  #takeOn(lane: StreamLane, reader: ReadingThread, taken: StreamHandOver): void {
    this.#adoptions.takeOn(taken, reader.consumer, lane.seatOf(taken.local))
  }

  /** An event for the trace. One that several groups here receive is noted once. */
  noteRecord(frame: EventFrame, origin: EventHost | null, isReceived: boolean): void {
    if (isReceived) {
      if (this.#received.has(frame.id)) return
      this.#received.add(frame.id)
      if (this.#received.size > RECEIVED_KEPT) this.#received.delete(this.#received.values().next().value!)
    }
    this.#options.hub.note(frame, origin)
  }

  // ── stop ──────────────────────────────────────────────────────────────────

  /** Reads nothing more. Resolves when all threads have nothing in hand, or at the deadline. */
  async stopReading(deadlineMs: number): Promise<void> {
    this.#isStopping = true
    this.#options.hub.returnResting()
    const late = new Promise<void>((resolve) => setTimeout(resolve, Math.max(0, deadlineMs - Date.now())).unref())
    await Promise.race([this.#endReading(), late])
    while (Date.now() < deadlineMs && [...this.#lanes.values()].some(({ isStopped }) => !isStopped)) await pause(10)
  }

  async #endReading(): Promise<void> {
    if (this.#isUp) await this.#watch.stop()
    for (const lane of this.#lanes.keys()) lane.post({ type: 'stream-stop' })
    await this.#own.stop()
  }

  /** Acknowledgements that are not confirmed. */
  get open(): number {
    return this.#adoptions.open
  }

  /** Gives back what is left, gives up the name, and closes the connections. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#upkeep.stop()
    this.#takeover.close()
    await Promise.all([this.#delayed.stop(), this.#trimmer.stop()])
    this.#gate.close()
    this.#replies.close()
    if (this.#isUp && this.#redis.isReady) {
      try {
        await this.#upkeep.release([...this.#orphans].map(({ consumer }) => consumer))
        if (!this.#isLost) await this.#lock.release()
      } catch {
        // The others take it over when its time is up.
      }
    }
    this.#adoptions.close()
    await Promise.all([this.#own.close(), this.#blocking.close(), this.#listening.close()])
  }
}

const isUnavailable = (error: unknown): boolean => error instanceof HeddleError && error.code === 'KV_UNAVAILABLE'
const isTaken = (error: unknown): boolean => error instanceof HeddleError && error.code === 'REPLICA_ID_TAKEN'
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const ALWAYS = (): boolean => true
/** One connection of the process tells of the store's state; the others would say the same. */
const QUIET = (): void => {}
