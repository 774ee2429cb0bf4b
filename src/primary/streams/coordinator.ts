import type { SubscribeOptions } from '../../contracts/event-bus.ts'
import type { LogLevel } from '../../contracts/logger.ts'
import type { DeliveryTracing } from '../../contracts/tracing.ts'
import type { Settings } from '../../core/config/schema.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { until, withTimeout } from '../../core/schedule/waiting.ts'
import type { DeliverySink } from '../../runtime/events/event-server.ts'
import { replicaOfConsumer, streamOf } from '../../runtime/streams/keys.ts'
import { ThreadStreams } from '../../runtime/streams/thread-streams.ts'
import { openRedis, type RedisClient } from '../../stores/redis/client.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { StreamReport } from '../../transport/stream-messages.ts'
import type { SubscriberInstance, SubscriberThread } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import { DelayedEvents } from './delayed.ts'
import { GroupProvisioner } from './group-provisioner.ts'
import { HubStreams } from './hub-streams.ts'
import { Maintenance } from './maintenance.ts'
import type { ReaderLink, ReadingThread } from './reading-thread.ts'
import { DeadConsumers, type PauseReason, ReadingThreads } from './reading-threads.ts'
import { StreamRecords } from './records.ts'
import { ReplicaLock } from './replica-lock.ts'
import { StreamStartup } from './startup.ts'
import { StreamDriver } from './stream-driver.ts'
import { StreamWatch, WATCH_MS } from './stream-watch.ts'
import { shownTrimReport, Trimmer } from './trimmer.ts'

export interface StreamCoordinatorOptions {
  settings: Settings
  hub: Hub
  /** The hub's instances of the primary's own subscribers. */
  ownInstance: (subscriberIndex: number) => SubscriberInstance | null
  /** Begins a delivery to one of them; its answer goes to the sink. */
  serve: (deliveryId: number, frame: EventFrame, sink: DeliverySink) => void
  /** Another process has this REPLICA_ID: this process must end. */
  onReplicaLost: (message: string) => void
  /** Null while tracing is off. */
  tracing: DeliveryTracing | null
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/**
 * Coordinates the streams of one process, in its primary: it names the consumers and wakes them, renews the leases of their pending
 * entries, and claims the entries of consumers that are gone. The events themselves do not pass it.
 */
export class StreamCoordinator {
  readonly #options: StreamCoordinatorOptions
  readonly #own: ThreadStreams
  readonly #redis: RedisClient
  readonly #blocking: RedisClient
  readonly #lock: ReplicaLock
  readonly driver: StreamDriver
  readonly #records: StreamRecords
  readonly #delayed: DelayedEvents
  readonly #hub: HubStreams
  readonly #watch: StreamWatch
  /** The threads that read. */
  readonly threads: ReadingThreads
  readonly #startup: StreamStartup
  readonly #maintenance: Maintenance
  readonly #trimmer: Trimmer
  #isStopping = false

  constructor(options: StreamCoordinatorOptions) {
    this.#options = options
    const { settings, hub, log } = options
    const { replicaId } = settings

    // ── connections, and the name of this process ──
    this.#own = this.#openOwnStreams()
    const { redis } = this.#own
    this.#redis = redis
    // The connection of the own streams logs the state of the store: this one would log the same.
    this.#blocking = openRedis(settings, { name: `heddle:${replicaId}:watch`, blockingMs: WATCH_MS, log: () => {} })
    this.#lock = this.#makeLock()

    // ── publishing ──
    this.#records = new StreamRecords(hub)
    this.#delayed = new DelayedEvents(redis, { log })
    this.driver = new StreamDriver({
      settings,
      own: this.#own,
      published: (event, origin) => this.#records.published(event, origin),
      dropped: hub.deadLetters.dropped,
    })

    // ── reading ──
    this.#hub = this.#makeHubStreams()
    this.#watch = new StreamWatch(this.#blocking, redis)
    const groups = this.#makeGroups()
    this.threads = new ReadingThreads({
      replica: replicaId,
      lanes: settings.lanes,
      own: this.#linkToOwn(),
      wakeups: this.#watch.wakeups,
      groups,
      deadConsumers: new DeadConsumers(this.#hub.claimer, this.#mayBegin),
    })
    this.#startup = new StreamStartup({
      redis,
      lock: this.#lock,
      groups,
      threads: this.threads,
      onHeld: () => this.#begin(),
      onTaken: options.onReplicaLost,
      log,
    })

    // ── what is done from time to time ──
    this.#maintenance = new Maintenance({
      redis,
      claimIdleMs: settings.eventBusClaimIdleMs,
      threads: this.threads,
      hub: this.#hub,
      mayTakeOver: this.#mayBegin,
      isOurs: () => this.#lock.isHeld,
      log,
    })
    this.#trimmer = this.#makeTrimmer()
  }

  /** The primary publishes, and reads for its own subscribers. */
  #openOwnStreams(): ThreadStreams {
    const { settings, serve, tracing, log } = this.#options
    const own: ThreadStreams = new ThreadStreams({
      settings,
      role: 'primary',
      serve: (deliveryId, frame) => serve(deliveryId, frame, own.sink),
      received: (frame) => this.#records.received(frame),
      tracing,
      published: () => {},
      report: (report) => this.onReport(this.threads.own, report),
      log,
    })
    return own
  }

  #linkToOwn(): ReaderLink {
    return {
      isResponsive: true,
      send: (command) => this.#own.obey(command),
      instanceOf: this.#options.ownInstance,
      stopped: () => {},
    }
  }

  #makeLock(): ReplicaLock {
    const { settings, onReplicaLost } = this.#options
    return new ReplicaLock(this.#redis, settings.replicaId, {
      onLost: ({ host, pid }) => {
        void this.#endReading()
        onReplicaLost(
          `Process ${pid} on ${host} has taken the REPLICA_ID ${settings.replicaId} while this one stood still: give each replica a REPLICA_ID of its own`,
        )
      },
    })
  }

  /** The hub takes over what the readers do not finish. */
  #makeHubStreams(): HubStreams {
    const { settings, hub, log } = this.#options
    return new HubStreams({
      redis: this.#redis,
      hub,
      letters: this.driver.deadLetters,
      replica: settings.replicaId,
      isAlive: (consumer) => this.threads.isReading(consumer),
      received: (frame) => this.#records.received(frame),
      full: (stream, group, isFull) => this.threads.hold(stream, group, isFull),
      log,
    })
  }

  #makeGroups(): GroupProvisioner {
    const { claimed, claimer } = this.#hub
    return new GroupProvisioner({
      redis: this.#redis,
      replica: this.#options.settings.replicaId,
      claimer,
      mayOpen: this.#mayBegin,
      onOpen: (thread, streamGroup) => {
        const { event, stream, group } = streamGroup
        if (claimed.isFull(stream, group)) thread.hold(streamGroup, true)
        thread.link.send({ kind: 'open', event, group })
        this.#watch.wakeups.add(thread, event, group)
      },
    })
  }

  #makeTrimmer(): Trimmer {
    const { settings, hub, log } = this.#options
    return new Trimmer(this.#redis, {
      streams: () => Object.keys(hub.topology()).map(streamOf),
      report: (report) => log(...shownTrimReport(report)),
      isLeftOver: (consumer) => replicaOfConsumer(consumer) === settings.replicaId && !this.threads.isReading(consumer),
      maxLen: settings.eventBusStreamMaxlen,
    })
  }

  /** False once this process ends, or has lost its name. */
  readonly #mayBegin = (): boolean => !this.#isStopping && !this.#lock.isLost

  // ── start ─────────────────────────────────────────────────────────────────

  /**
   * Takes the name of this replica. When the store does not answer it goes on trying, and the process serves what it can.
   * @throws REPLICA_ID_TAKEN
   */
  start(): Promise<void> {
    return this.#startup.start()
  }

  #begin(): void {
    // Before other replicas claim: after a long absence all pending entries here look abandoned.
    this.#redis.onUp(() => void this.#maintenance.renew().catch(() => {}))
    this.#watch.start()
    this.#delayed.start()
    this.#maintenance.start()
    this.#trimmer.start()
    this.threads.start()
  }

  /** Why events do not flow; null when they do. */
  get fault(): string | null {
    return this.#startup.fault
  }

  /** True when all threads have been able to read at some time: before, this process should get no traffic. */
  get wasOpen(): boolean {
    return this.#startup.wasOpen
  }

  /** Resolves when all threads can read, or when it is known that the store does not answer or refuses. */
  opened(): Promise<void> {
    return this.#startup.done()
  }

  // ── the primary's own subscribers ─────────────────────────────────────────

  add(subscriberIndex: number, plugin: string, event: string, identity: string, options: SubscribeOptions): void {
    this.#own.add(subscriberIndex, plugin, event, identity, options)
    this.threads.subscribe(this.threads.own, { subscriberIndex, event, identity, options })
  }
  remove(subscriberIndex: number): void {
    this.#own.remove(subscriberIndex)
    this.threads.unsubscribe(this.threads.own, subscriberIndex)
  }

  // ── threads ───────────────────────────────────────────────────────────────

  /** Acts on what a thread says of the streams that it reads. */
  onReport(thread: ReadingThread, report: StreamReport): void {
    const { wakeups } = this.#watch
    switch (report.kind) {
      case 'idle':
        return wakeups.idle(thread, report.event, report.upTo)
      case 'more':
        return wakeups.more(thread, report.event)
      case 'full':
        return wakeups.full(thread, report.event, report.isFull)
      case 'delayed':
        return this.#delayed.dueIn(report.delayMs)
      case 'hand-over': {
        const { handOver } = report
        return this.#hub.failedDeliveries.takeHandOver(
          handOver,
          thread.consumer,
          thread.link.instanceOf(handOver.subscriberIndex),
        )
      }
      case 'stopped':
        thread.isStopped = true
        thread.link.stopped()
    }
  }

  /** The subscribers of a plugin get no new events, or get events again. */
  pausePlugin(plugin: string, isPaused: boolean, why?: PauseReason): void {
    this.threads.pause(plugin, isPaused, why)
  }

  /** Records an event that a lane has published, or received from another replica. */
  record(frame: EventFrame, origin: SubscriberThread | null, isReceived: boolean): void {
    if (isReceived) this.#records.received(frame, origin)
    else this.#records.published(frame, origin)
  }

  // ── stop ──────────────────────────────────────────────────────────────────

  /** Reads nothing more. Resolves when no thread has pending entries, or at the deadline. */
  async stopReading(deadlineMs: number): Promise<void> {
    this.#isStopping = true
    this.#startup.stop()
    this.#options.hub.returnDelayed()
    await withTimeout(this.#endReading(), deadlineMs - steadyMs(), undefined)
    await until(() => this.threads.areStopped, deadlineMs)
  }

  async #endReading(): Promise<void> {
    await this.#watch.stop()
    this.threads.stop()
  }

  /** Acknowledgements that are not confirmed. */
  get open(): number {
    return this.#hub.failedDeliveries.open
  }

  /** Gives back the entries that are left, gives up the name, and closes the connections. */
  async close(): Promise<void> {
    this.#isStopping = true
    this.#startup.stop()
    this.#maintenance.stop()
    this.#hub.stop()
    await Promise.all([this.#delayed.stop(), this.#trimmer.stop()])
    if (this.#redis.isReady) {
      try {
        await this.#maintenance.release()
        await this.#lock.release()
      } catch {
        // The others claim the entries when their idle time is over.
      }
    }
    this.#hub.close()
    await Promise.all([this.#own.close(), this.#blocking.close(), this.driver.close()])
  }
}
