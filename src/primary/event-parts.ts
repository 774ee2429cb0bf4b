// The parts of the primary that carry events: hub, log, buses, drivers.

import type { Awaitable } from '../contracts/common.ts'
import type { Settings } from '../core/config/schema.ts'
import { codeOf, messageOf } from '../core/errors/description.ts'
import { needPackages, OPTIONAL_PACKAGES } from '../core/modules/optional-package.ts'
import { SYSTEM_CHANCE, SYSTEM_CLOCK } from '../core/schedule/clock.ts'
import { StorePublisher, type ThreadStore } from '../runtime/event-store/thread-store.ts'
import { threadStoreOf } from '../runtime/host/bus.ts'
import type { ThreadKernel } from '../runtime/kernel/thread.ts'
import { asBytes, type EventFrame } from '../transport/frames/event-frame.ts'
import { Durable } from './event-store/durable.ts'
import { SYSTEM_PROCESSES } from './event-store/process-identity.ts'
import { askLimits, giveLimitsBack } from './event-store/shared-limits.ts'
import { askPermits, tellPermits } from './event-store/shared-permits.ts'
import { StoreWriter } from './event-store/store-writer.ts'
import { StoredDeadLetters } from './event-store/stored-dead-letters.ts'
import type { SubscriberThread } from './events/consumer.ts'
import type { DeadLetters } from './events/dead-letters.ts'
import { type EventDriver, InProcessDriver } from './events/event-driver.ts'
import { Hub } from './events/hub.ts'
import { LaneSubscribers } from './events/lane-subscribers.ts'
import { PrimaryBus } from './events/primary-bus.ts'
import { RecordForwarder } from './events/record-forwarder.ts'
import { TraceFile } from './events/records.ts'
import type { Log } from './logging/process-log.ts'
import { Queues } from './queues/queues.ts'
import type { RedisLog } from './redis-streams/redis-log.ts'
import type { LaneSet } from './supervision/lane-set.ts'
import type { ProcessDeaths } from './supervision/process-deaths.ts'

/** Events of the runtime tell what happens in this process: none of them outlives it. */
const RUNTIME_EVENT = 'runtime.'

/** Stores events that are published in the primary. */
class PrimaryPublisher {
  readonly #publisher: StorePublisher
  readonly #origins = new WeakMap<EventFrame, SubscriberThread | null>()

  constructor(log: ThreadStore, durable: Durable) {
    this.#publisher = new StorePublisher(
      log,
      (event) => durable.take(event, this.#origins.get(event) ?? null),
      (event, dueMs) => durable.moved(event, dueMs),
    )
  }

  publish(event: EventFrame, origin: SubscriberThread | null): Promise<string> {
    this.#origins.set(event, origin)
    return this.#publisher.publish(event)
  }
}

/** Keeps the events in the database: they are stored first, and delivered by the hub. Requests for a reply live as long as the one who waits. */
class DatabaseDriver implements EventDriver {
  readonly deadLetters: DeadLetters
  readonly #hub: Hub
  readonly #publisher: PrimaryPublisher

  constructor(hub: Hub, publisher: PrimaryPublisher, deadLetters: DeadLetters) {
    this.#hub = hub
    this.#publisher = publisher
    this.deadLetters = deadLetters
  }

  publish(event: EventFrame, origin: SubscriberThread | null): Awaitable<string> {
    const isOwn = event.event.startsWith(RUNTIME_EVENT)
    return isOwn ? this.#hub.publish(asBytes(event), origin) : this.#publisher.publish(event, origin)
  }

  request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string> {
    return this.#hub.request(asBytes(event), origin, timeoutMs)
  }
}

export interface EventParts {
  readonly hub: Hub
  readonly bus: PrimaryBus
  readonly laneSubscribers: LaneSubscribers
  readonly recordForwarder: RecordForwarder
  readonly threadStore: ThreadStore
  readonly durable: Durable
  /** Its `queues()` is cheap: it looks at most once a second. */
  readonly queues: Queues
  readonly storeWriter: StoreWriter
  readonly publisher: PrimaryPublisher
  readonly deadLetters: StoredDeadLetters
  /** Carries the events that are published in the primary. */
  driver: EventDriver
  /** The driver where no database can hold them. */
  readonly inProcess: InProcessDriver
  /** Null while the hub carries all events: with the in-process bus, and until `openStreams`. */
  streams: RedisLog | null
}

/**
 * @param deaths of earlier processes; null where nobody knows
 * @param onReplicaLost told why this process must end
 */
export function assembleEvents(
  kernel: ThreadKernel,
  lanes: LaneSet,
  deaths: ProcessDeaths | null,
  onReplicaLost: (message: string) => void,
): EventParts {
  const { settings, writeLog: log } = kernel
  const threadStore = threadStoreOf(kernel)
  const hub = new Hub({
    clock: SYSTEM_CLOCK,
    chance: SYSTEM_CHANCE,
    maxQueue: settings.eventBusMaxQueue,
    maxDeadBytes: settings.eventBusMaxDeadBytes,
    maxNames: settings.eventBusMaxNames,
    isStoreCrowded: () => threadStore.isCrowded,
    waitsForTools: settings.eventBusWaitForTools,
    // Until its tables are there, who else is there is not known.
    sharedLimits: {
      isShared: () => threadStore.isOnServer,
      ask: (asks) => threadStore.opened().then(() => askLimits(threadStore.database, asks)),
      giveBack: (limits) => threadStore.opened().then(() => giveLimitsBack(threadStore.database, limits)),
    },
    sharedPermits: {
      isShared: () => threadStore.isOnServer,
      ask: (asks) => threadStore.opened().then(() => askPermits(threadStore.database, threadStore.memory.member, asks)),
      tell: (permits) => tellPermits(threadStore.database, threadStore.memory.member, permits),
    },
    onQuarantine: (isWanted) => lanes.quarantine.want(isWanted),
    onQuarantineUsed: () => lanes.quarantine.renew(),
    log: (level, message, fields) => log(level, message, 'event_bus', fields),
  })
  hub.records.keepHistory(traceFile(settings, log))
  const bus = new PrimaryBus(kernel, hub, () => parts.driver, {
    cancel: async (what) => {
      await parts.streams?.cancel(what)
      return durable.cancel(what)
    },
    followed: (id, seen) => durable.followed.followed(id, seen),
    queues: () => queues.queues(),
    deliveries: (page) => queues.deliveries(page),
    setPaused: (...of) => queues.setPaused(...of),
    runNow: (...of) => queues.runNow(...of),
  })
  bus.logFailedAttempts()
  const laneSubscribers = new LaneSubscribers(hub)
  const storeWriter = new StoreWriter(() => lanes.ready, threadStore)
  const durable = new Durable({
    hub,
    log: threadStore,
    maxQueue: settings.eventBusMaxQueue,
    maxStored: settings.eventBusMaxStored,
    mayMakeTables: settings.dbAutoMigrate,
    // The kernel sends requests to every process on a shared port, also to one that is not ready.
    isRequired: settings.eventBusDriver === 'database' || settings.httpReusePort,
    deathsOf: deaths === null ? null : (...of) => deaths.ofEvent(...of),
    replica: settings.replicaId,
    processes: SYSTEM_PROCESSES,
    onLost: onReplicaLost,
    relay: settings.eventBusDriver === 'keyvalue_streams' ? (event) => parts.streams!.driver.relay(event) : null,
    write: (changes) => storeWriter.write(changes),
    isAlive: (threadId) => threadId === 0 || lanes.all.some(({ heartbeat }) => heartbeat.threadId === threadId),
    report: (level, message, fields) => log(level, message, 'event_bus', fields),
  })
  bus.log = {
    log: threadStore,
    take: (frame) => durable.take(frame, bus),
    cancelled: () => durable.cancelled(),
    moved: (...of) => durable.moved(...of),
  }
  bus.reportThrough(
    () => threadStore.opened(),
    (id) => durable.reported(id),
  )
  const queues = new Queues({
    hub,
    clock: SYSTEM_CLOCK,
    replica: settings.replicaId,
    durable,
    backlog: async () => (await parts.streams?.backlog()) ?? [],
  })
  const publisher = new PrimaryPublisher(threadStore, durable)
  const deadLetters = new StoredDeadLetters(hub, threadStore, durable)
  const inProcess = new InProcessDriver(hub, deadLetters, (event, origin) =>
    threadStore.hasDatabase ? publisher.publish(event, origin) : null,
  )
  const parts: EventParts = {
    hub,
    bus,
    laneSubscribers,
    recordForwarder: new RecordForwarder(hub, (lane) => laneSubscribers.threadOf(lane)),
    threadStore,
    durable,
    queues,
    storeWriter,
    publisher,
    deadLetters,
    driver: settings.eventBusDriver === 'database' ? new DatabaseDriver(hub, publisher, deadLetters) : inProcess,
    inProcess,
    streams: null,
  }
  return parts
}

/** Beside the database file. Where its folder is missing, as it may be with a server, there is no history. */
function traceFile({ sqlitePath }: Settings, log: Log): TraceFile {
  return new TraceFile(`${sqlitePath}-traces`, SYSTEM_CLOCK, (error) => {
    if (codeOf(error) === 'ENOENT') return
    const message = `The history of events is not kept for the next process: ${messageOf(error)}`
    log('WARNING', message, 'event_bus')
  })
}

/** Lets streams carry the events. Loaded on demand: the in-process bus has no use for a client of the store. @throws REPLICA_ID_TAKEN, PACKAGE_MISSING */
export async function openStreams(
  parts: EventParts,
  { settings, writeLog }: ThreadKernel,
  onReplicaLost: (message: string) => void,
): Promise<void> {
  needPackages('EVENT_BUS_DRIVER=keyvalue_streams', OPTIONAL_PACKAGES.redis)
  const { RedisLog } = await import('./redis-streams/redis-log.ts')
  const streams = new RedisLog({
    settings,
    hub: parts.hub,
    stored: parts.deadLetters,
    store: (event, origin) => parts.publisher.publish(event, origin),
    refused: () => parts.threadStore.memory.refused(),
    refusals: () => parts.threadStore.memory.refusals,
    onReplicaLost,
    log: (level, message, fields) => writeLog(level, message, 'event_bus', fields),
  })
  parts.streams = streams
  parts.driver = streams.driver
  await streams.start()
}
