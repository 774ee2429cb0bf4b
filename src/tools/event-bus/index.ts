/// <reference lib="es2024.collection" />

// The tool `event_bus`, and its warnings of events that no contract declares.

import type { Owner } from '../../contracts/common.ts'
import type {
  DeadLetter,
  DeadLetterFilter,
  EventBus,
  HubServices,
  ReplayPreview,
  Subscriber,
  TopologyEntry,
} from '../../contracts/event-bus.ts'
import type { Payload, PublishOptions } from '../../contracts/events.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import type { CallDetails, SpanAttributes } from '../../contracts/tracing.ts'
import { nearestName } from '../../core/config/nearest-name.ts'
import { callerPlace } from '../../core/errors/places.ts'
import { checkPayload, type EventContract, loadEventContracts, snapshotOf } from '../../core/schemas/event-contracts.ts'
import {
  checkCancel,
  checkDeliveryPage,
  checkEventId,
  checkEventName,
  checkFollowed,
  checkFollowOptions,
  checkFunction,
  checkLetterFilter,
  checkLetterPage,
  checkPublishOptions,
  checkRequestOptions,
  checkSubscribeOptions,
  checkSubscriber,
  isEventName,
} from './options.ts'

/** Names that are remembered; a plugin may invent any number of them. */
const NAMES_MAX = 1000

interface UndeclaredEvent {
  event: string
  /** The plugin that publishes it, or subscribes to it; undefined when it is not known. */
  plugin: string | undefined
  /** Where in its code: `domains/shop/plugins/buy.ts:12`. */
  place: string
  /** Names of all events that have a contract. */
  declared: readonly string[]
}

/** Warns of events that no contract declares, in development: once per name. */
class UndeclaredEvents {
  readonly #names = new Set<string>()

  /** True when the name has not been seen before. */
  isNew(event: string): boolean {
    if (this.#names.has(event) || this.#names.size >= NAMES_MAX) return false
    this.#names.add(event)
    return true
  }
}

/** The warning of an event that is published. */
function undeclared({ event, plugin, place, declared }: UndeclaredEvent): string {
  const folder = plugin === undefined ? '<domain>' : plugin.split('.', 1)[0]
  const write = `write '${event}': z.object({ … }) into domains/${folder}/events.ts`
  const who = plugin === undefined ? '' : ` by ${plugin}`
  return `The event '${event}' is published${who} at ${place}, and no contract declares it: its payload is not checked. Fix: ${meant(event, declared)}${write}`
}

/** The warning of a subscription whose event is probably misspelt; undefined where no contract has a similar name. */
function misspelt({ event, plugin, place, declared }: UndeclaredEvent): string | undefined {
  const hint = meant(event, declared)
  if (hint === '') return undefined
  return `${plugin ?? 'A plugin'} subscribes to '${event}' at ${place}, and no contract declares it. Fix: ${hint}correct the name, or declare the event in an events.ts`
}

function meant(event: string, declared: readonly string[]): string {
  const name = nearestName(event, declared)
  return name === undefined ? '' : `did you mean '${name}'? Else `
}

type ReplayFilter = DeadLetterFilter & { limit: number }

/** The oldest letters for which the filter holds, oldest first. @param keep what is kept of each: there may be many */
async function oldestLetters<T>(
  hub: HubServices,
  { limit, ...filter }: ReplayFilter,
  keep: (letter: DeadLetter) => T,
): Promise<T[]> {
  const pages: T[][] = []
  for (let before: string | undefined; ; ) {
    const letters = await hub.deadLetters(before === undefined ? filter : { ...filter, before })
    if (letters.length === 0) return pages.flat().slice(0, limit)
    pages.unshift(letters.map(keep))
    before = letters[0]!.id
  }
}

/** Replays the oldest letters for which the filter holds, one after another. @returns how many were replayed */
async function replayLetters(hub: HubServices, filter: ReplayFilter): Promise<number> {
  let replayed = 0
  // All ids first: a replay that fails again leaves a new letter.
  for (const id of await oldestLetters(hub, filter, (letter) => letter.id))
    if (await hub.replayDeadLetter(id)) replayed++
  return replayed
}

/** What `replayLetters` would do, by subscriber. */
async function previewOf(hub: HubServices, filter: ReplayFilter): Promise<ReplayPreview[]> {
  const letters = await oldestLetters(hub, filter, ({ event, subscriber, timestamp, parked }) => ({
    event,
    subscriber,
    timestamp,
    parked: parked === true,
  }))
  const topology = await hub.topology()
  return [...Map.groupBy(letters, ({ event, subscriber }) => `${event} ${subscriber}`).values()].map((some) => {
    const { event, subscriber, timestamp: oldest } = some[0]!
    return {
      event,
      subscriber,
      letters: some.length,
      parked: some.filter(({ parked }) => parked).length,
      oldest,
      newest: some.at(-1)!.timestamp,
      subscribed: topology[event]?.subscribers.includes(subscriber) === true,
    }
  })
}

async function pauseOf(hub: HubServices, event: unknown, subscriber: unknown, isPaused: boolean): Promise<number> {
  checkEventName(event)
  return hub.setPaused(event as string, checkSubscriber(subscriber), isPaused)
}

/**
 * The bus as a plugin sees it, on the transport of its thread. Payloads are checked against their contracts here, where they are
 * published. The transport refuses payloads that are not JSON.
 */
export default class EventBusTool implements Tool {
  readonly name = 'event_bus'
  #runtime: ToolRuntime
  /** The contracts, as they were on disk when they were loaded; null until then. */
  #contracts: ReadonlyMap<string, EventContract> | null = null
  #loading: Promise<void> | undefined
  /** In the primary: faults of the contracts, of which every thread tells when it starts. */
  #knownFaults: readonly string[] = []
  /** Events without a contract that this thread has met; null in production, where nobody would read of them. */
  readonly #undeclared: UndeclaredEvents | null
  /** In the primary: those that were warned of. */
  readonly #warnedOf = new UndeclaredEvents()

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
    this.#undeclared = runtime.settings.nodeEnv === 'production' ? null : new UndeclaredEvents()
    runtime.host.bus.checkCancel = checkCancel
    // Not async: a promise less for each event of a transaction.
    runtime.host.bus.checkPublication = (event, payload, options) => {
      checkEventName(event)
      const taken = checkPublishOptions(options)
      if (this.#contracts === null) return this.#handOnLater(checked, event, payload, taken, undefined)
      const check = this.#check(event, payload, undefined)
      return check === undefined
        ? { payload, options: taken }
        : after(check, checked, event, snapshotOf(payload), taken)
    }
  }

  /**
   * A lane loads the contracts when it starts. The primary, whose plugins rarely publish, loads them with the first event, because the
   * schema library takes some 15 MB and 150 ms. The lanes report faults of the contracts.
   */
  async boot(): Promise<void> {
    if (this.#runtime.thread.kind === 'lane') await this.#loadContracts()
  }

  serve(method: string, [first, second]: readonly unknown[]): void {
    if (method === 'contract-faults') this.#tellFaults(first as string[])
    if (method === 'undeclared-event' && this.#warnedOf.isNew(first as string))
      this.#runtime.log('WARNING', second as string)
  }

  /** Each is logged once, and again when it was fixed and has come back. @param messages all faults that a thread has found */
  #tellFaults(messages: readonly string[]): void {
    for (const message of messages) if (!this.#knownFaults.includes(message)) this.#runtime.log('ERROR', message)
    this.#knownFaults = messages
  }

  /** Source: OpenTelemetry semantic conventions for messaging. The event's id is the id of its event record. */
  describeCall(method: string, [event]: readonly unknown[]): CallDetails | undefined {
    if (method !== 'publish' && method !== 'request') return undefined
    if (!isEventName(event)) return { kind: 'producer' }
    const attributes = {
      'messaging.system': 'heddle',
      'messaging.operation.name': method,
      'messaging.operation.type': 'send',
      'messaging.destination.name': event,
    }
    return { kind: 'producer', attributes, ofResult: method === 'publish' ? idsOf : undefined }
  }

  api(owner: Owner): EventBus {
    const { bus } = this.#runtime.host
    const hub = bus.services
    const send = (event: string, payload: Payload, options: PublishOptions) =>
      bus.publish(owner.name, event, payload, options)
    const ask = (event: string, payload: Payload, timeoutMs: number) =>
      bus.request(owner.name, event, payload, timeoutMs)
    return {
      // A fault rejects and is never thrown, because the caller may not await. Not an async function: that would cost two more promises.
      publish: (event, payload, options) => {
        try {
          checkEventName(event)
          return this.#handOn(send, event, payload, checkPublishOptions(options), owner.name)
        } catch (fault) {
          return Promise.reject(fault)
        }
      },
      request: async <T extends Payload>(event: string, payload: Payload, options?: { timeoutMs?: number }) => {
        checkEventName(event)
        return (await this.#handOn(ask, event, payload, checkRequestOptions(options), owner.name)) as T
      },
      subscribe: (event, handler, options) => {
        checkEventName(event)
        checkFunction('handler', handler)
        const checked = checkSubscribeOptions(options)
        this.#warnOfSubscriber(event, owner.name)
        return bus.subscribe({ owner, event, handler: handler as Subscriber, ...checked })
      },
      cancel: async (what, options) => hub.cancel(checkCancel(what, options)),
      follow: (id, options) => bus.follow(checkFollowed(id), checkFollowOptions(options)),
      queues: async () => hub.queues(),
      getDeliveries: async (page) => hub.deliveries(checkDeliveryPage(page)),
      pause: async (event, subscriber) => pauseOf(hub, event, subscriber, true),
      resume: async (event, subscriber) => pauseOf(hub, event, subscriber, false),
      runNow: async (id, subscriber) => hub.runNow(checkEventId('runNow', id), checkSubscriber(subscriber)),
      addListener: (listener) => {
        checkFunction('listener', listener)
        return bus.addListener(listener)
      },
      addFailureListener: (listener) => {
        checkFunction('listener', listener)
        return bus.addFailureListener(listener)
      },
      getTraceHistory: () => hub.history(),
      getSubscribers: () => {
        const topology = hub.topology()
        return topology instanceof Promise ? topology.then(subscribersOf) : subscribersOf(topology)
      },
      getTopology: () => hub.topology(),
      getDeadLetters: (page) => hub.deadLetters(checkLetterPage(page)),
      getDeadLetterPayload: async (id) => {
        const json = await hub.deadLetterPayload(String(id))
        return json === null ? null : (JSON.parse(json) as Payload)
      },
      replayDeadLetter: (id) => hub.replayDeadLetter(id),
      replayDeadLetters: async (filter) => replayLetters(hub, checkLetterFilter(filter)),
      previewReplay: async (filter) => previewOf(hub, checkLetterFilter(filter)),
      editDeadLetter: async (id, payload) => {
        const [letter] = await hub.deadLetters(checkLetterPage({ ids: [id] }))
        if (letter === undefined) return false
        const edit = async (event: string, edited: Payload) => bus.editDeadLetter(id, event, edited)
        return this.#handOn(edit, letter.event, payload, undefined, owner.name)
      },
      deleteDeadLetter: (id) => hub.deleteDeadLetter(id),
    }
  }

  /** Publishes a payload that fits its contract; at once, unless the schema is asynchronous. @throws EVENT_CONTRACT */
  #handOn<O, R>(
    to: HandOver<O, R>,
    event: string,
    payload: Payload,
    options: O,
    plugin: string | undefined,
  ): Promise<R> {
    if (this.#contracts === null) return this.#handOnLater(to, event, payload, options, plugin)
    const check = this.#check(event, payload, plugin)
    return check === undefined ? to(event, payload, options) : after(check, to, event, snapshotOf(payload), options)
  }

  /** @returns undefined when the payload fits its contract; a promise where its schema is asynchronous. @throws EVENT_CONTRACT */
  #check(event: string, payload: Payload, plugin: string | undefined): Promise<unknown> | undefined {
    const contract = this.#contracts!.get(event)
    if (contract !== undefined) return checkPayload(event, contract, payload)
    if (this.#undeclared !== null) this.#warnOfEmitter(event, plugin)
    return undefined
  }

  /** Once per event in this thread, and in the process. */
  #warnOfEmitter(event: string, plugin: string | undefined): void {
    if (this.#undeclared!.isNew(event)) this.#warn(event, undeclared(this.#undeclaredOf(event, plugin)))
  }

  #warnOfSubscriber(event: string, plugin: string): void {
    // No event is named like this.
    const key = `subscribe ${event}`
    if (this.#contracts?.has(event) !== false || this.#undeclared?.isNew(key) !== true) return
    const warning = misspelt(this.#undeclaredOf(event, plugin))
    if (warning !== undefined) this.#warn(key, warning)
  }

  #undeclaredOf(event: string, plugin: string | undefined): UndeclaredEvent {
    const publisher = plugin ?? this.#runtime.context()?.origin?.plugin
    return { event, plugin: publisher, place: callerPlace(), declared: [...this.#contracts!.keys()] }
  }

  /** Not awaited, because nothing depends on it. */
  #warn(key: string, warning: string): void {
    this.#runtime.callPrimary('undeclared-event', [key, warning]).catch(() => {})
  }

  async #handOnLater<O, R>(
    to: HandOver<O, R>,
    event: string,
    payload: Payload,
    options: O,
    plugin: string | undefined,
  ): Promise<R> {
    await this.#loadContracts()
    return this.#handOn(to, event, payload, options, plugin)
  }

  #loadContracts(): Promise<void> {
    this.#loading ??= loadEventContracts(this.#runtime.settings.domainsDir).then(({ contracts, faults }) => {
      this.#contracts = contracts
      if (this.#runtime.thread.kind === 'primary') return
      const messages = faults.map(({ message }) => message)
      // Not awaited, because the thread's boot does not depend on it. If the primary does not answer, this message is the least problem.
      this.#runtime.callPrimary('contract-faults', [messages]).catch(() => {})
    })
    return this.#loading
  }
}

const idsOf = (id: unknown): SpanAttributes => ({ 'messaging.message.id': String(id), 'heddle.event.id': String(id) })

type HandOver<Options, Reply> = (event: string, payload: Payload, options: Options) => Promise<Reply>

const checked = async (_: string, payload: Payload, options: PublishOptions) => ({ payload, options })

/** A separate function, because closures in the caller would cost time for every event that need not wait. */
async function after<O, R>(check: Promise<unknown>, to: HandOver<O, R>, event: string, payload: Payload, options: O) {
  await check
  return to(event, payload, options)
}

function subscribersOf(topology: Record<string, TopologyEntry>): Record<string, string[]> {
  const subscribed = Object.entries(topology).filter(([, entry]) => entry.subscribers.length > 0)
  return Object.fromEntries(subscribed.map(([event, entry]) => [event, [...entry.subscribers]]))
}
