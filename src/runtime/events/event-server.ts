// Runs the subscribers of a thread.

import type { Tx } from '../../contracts/db.ts'
import type { DeliveryFailure, LostReason, Subscription } from '../../contracts/event-bus.ts'
import type { Payload } from '../../contracts/events.ts'
import type { CodeTracing, OpenSpan, Origin, Work } from '../../contracts/tracing.ts'
import { ancestorsBelow } from '../../core/causality/ancestors.ts'
import { causality } from '../../core/causality/context.ts'
import { HeddleError, isAway, RetryLater, toWire, Unrecoverable, type WireError } from '../../core/errors/catalogue.ts'
import { cutText, isInstance, messageWithCauses } from '../../core/errors/description.ts'
import { Reminder } from '../../core/schedule/repeating-task.ts'
import { isThenable } from '../../core/schedule/waiting.ts'
import { SUBSCRIBER_DEFAULTS } from '../../core/schemas/event-contracts.ts'
import { withoutSecretStrings } from '../../core/schemas/secret-fields.ts'
import { type EventFrame, WANTS_REPLY } from '../../transport/frames/event-frame.ts'
import { DeliveredEvent, type DeliveryPort, type HandlerReport } from './delivered-event.ts'
import { type Asking, NORMAL, sharesFor } from './shares.ts'

/** Maximum characters of a subscriber's error message, and of its stack, sent to the primary. */
const DELIVERY_ERROR_MAX_LENGTH = 4096

/** A subscriber's error, for the hub, the failure listeners and the dead letter. */
export function deliveryError(thrown: unknown): WireError {
  const wire = toWire(thrown)
  wire.message = shown(messageWithCauses(thrown))
  if (wire.stack !== undefined) wire.stack = shown(wire.stack)
  if (isInstance(thrown, Unrecoverable)) wire.unrecoverable = true
  if (isInstance(thrown, RetryLater)) wire.later = { ms: thrown.ms, all: thrown.all }
  return wire
}

const shown = (text: string): string => cutText(withoutSecretStrings(text), DELIVERY_ERROR_MAX_LENGTH)

// Saved before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

/** Takes the answers to the deliveries of one broker: the hub, or the streams. Each broker numbers its own deliveries. */
export interface DeliverySink {
  delivered(deliveryId: number): void
  reply(deliveryId: number, json: string): void
  failed(deliveryId: number, error: WireError): void
}

/** The hub, which also takes back what a leaving thread has not begun. */
export interface DeliveryHub extends DeliverySink {
  unbegun(deliveries: readonly number[]): void
}

/** Runs a subscriber in a transaction, once for each event. */
interface HandledEvents {
  handleOnce(
    eventId: string,
    group: string,
    plugin: string,
    handler: unknown,
    handle: (tx: Tx) => unknown,
  ): Promise<unknown>
}

/** Makes the reports of deliveries. */
export interface HandlerReports {
  /** @param isOwn false once the delivery is no longer its handler's. @throws EVENT_BUS_UNAVAILABLE */
  make(place: { eventId: string; group: string; attempt: number }, isOwn: () => boolean): HandlerReport
  log(message: string): void
}

/** A failed attempt of a delivery that is tried again. */
interface FailedAttempt {
  plugin: string
  subscriber: string
  /** Id of the event. */
  id: string
  event: string
  requestId: string | null
  attempt: number
  retries: number
  error: WireError
}

/** Log record of a failed attempt: a warning, since the next may succeed. Outages of a tool do not count as attempts. */
export function attemptRecord(failed: FailedAttempt): { message: string; fields: Record<string, unknown> } {
  const { subscriber, id, event, requestId, attempt, retries, error } = failed
  const counted = error.away
    ? `since a tool does not take it at the moment, and gets it again later, as attempt ${attempt}`
    : `attempt ${attempt} of ${retries + 1}, and will get it again`
  return {
    message: `${subscriber} failed to handle ${event}, ${counted}: ${error.message}`,
    fields: { event, event_id: id, subscriber, attempt, request_id: requestId, stack: error.stack },
  }
}

/** Default of EVENT_BUS_MAX_SUBSCRIPTIONS. */
const SUBSCRIPTIONS_MAX = 1000
/** Number of deliveries that are remembered as given up before they were read. */
const LOST_MAX = 1024

/** Shortest interval between two log records about an outage, per subscriber, milliseconds. */
const AWAY_TOLD_MS = 10_000

/** The subscribers of one thread. */
export class EventServer implements DeliveryPort {
  /** Null while tracing is off. */
  tracing: CodeTracing | null = null
  /** Called when an attempt has thrown and another follows: the thread of the next attempt does not know the error. */
  onFailedAttempt: (failed: FailedAttempt) => void = () => {}
  /** Called when the last attempt has failed here, before the failure leaves the thread. */
  onFailure: (failure: DeliveryFailure, frame: EventFrame) => void = () => {}
  /** Runs transactional subscribers; null in a thread without any. */
  transactions: HandledEvents | null = null
  /** False once a plugin has replaced a builtin of the thread. @param origin the only plugin that has run since the last call */
  isSound: (origin?: Origin) => boolean = () => true
  /** False without a valid lease: another process may own the stored events of this one. */
  mayBegin: () => boolean = () => true
  /** Called when a handler says that it still works. */
  onHeartbeat: (deliveryId: number) => void = () => {}
  /** Called when a function that tells the share of an event has failed. */
  onShareFault: (group: string, event: string, fault: string) => void = () => {}
  /** Where handlers report; null in a thread that cannot. */
  reports: HandlerReports | null = null
  /** Whose transactional handlers were called. */
  readonly #called = new WeakSet<DeliveredEvent>()
  /** Given up before they were read here: their handlers do not begin. */
  readonly #lostBefore = new Set<number>()
  /** Deliveries whose handlers have not ended, by number. */
  readonly #running = new Map<number, DeliveredEvent>()
  readonly #subscriptions: (Subscription | undefined)[] = []
  readonly #origins: (Origin | undefined)[] = []
  /** Subscribers that ask whose an event is, by event. */
  readonly #sharing = new Map<string, Set<number>>()
  /** By method and event, the numbers in use. */
  readonly #identities = new Map<string, Set<number>>()
  readonly #numbers = new Map<number, { key: string; number: number }>()
  /** Number of subscribers of each plugin. */
  readonly #counts = new Map<string, number>()
  readonly #max: number
  readonly #waitsForTools: boolean
  /** Log limiter of outages, by subscriber. */
  readonly #away = new Reminder(AWAY_TOLD_MS)
  #inFlight = 0
  /** A subscriber is running and has not returned. */
  #isCalling = false

  /** @param max EVENT_BUS_MAX_SUBSCRIPTIONS. @param waitsForTools EVENT_BUS_WAIT_FOR_TOOLS */
  constructor(max = SUBSCRIPTIONS_MAX, waitsForTools = true) {
    this.#max = max
    this.#waitsForTools = waitsForTools
  }

  /**
   * @returns the subscriber's index in this thread, and its identity on the bus
   * @throws EVENT_SUBSCRIPTIONS_LIMIT
   */
  add(subscription: Subscription): { subscriberIndex: number; identity: string } {
    const { owner, event, handler } = subscription
    this.#count(owner.name, event)
    const base = `${owner.name}.${handler.name.replace(/^bound /, '') || 'anonymous'}`
    // One method may subscribe twice to one event, and two anonymous functions are two subscribers.
    const key = `${base} ${event}`
    const used = this.#identities.get(key) ?? new Set()
    let number = 1
    // A subscriber keeps its identity when it leaves and returns.
    while (used.has(number)) number++
    this.#identities.set(key, used.add(number))
    const subscriberIndex = this.#subscriptions.push(subscription) - 1
    this.#numbers.set(subscriberIndex, { key, number })
    const identity = this.#identityOf(subscriberIndex)
    this.#origins[subscriberIndex] = { plugin: owner.name, handler: identity }
    if (subscription.shares.length > 0)
      this.#sharing.set(event, (this.#sharing.get(event) ?? new Set()).add(subscriberIndex))
    return { subscriberIndex, identity }
  }

  #identityOf(subscriberIndex: number): string {
    const { key, number } = this.#numbers.get(subscriberIndex)!
    const base = key.slice(0, key.indexOf(' '))
    return number === 1 ? base : `${base}#${number}`
  }

  #count(plugin: string, event: string): void {
    const count = this.#counts.get(plugin) ?? 0
    if (count >= this.#max) {
      throw new HeddleError(
        'EVENT_SUBSCRIPTIONS_LIMIT',
        `${plugin} has ${count} subscriptions in this thread, and the one to ${event} is one more than EVENT_BUS_MAX_SUBSCRIPTIONS allows: subscribe once, in onBoot, and end subscriptions you no longer need`,
      )
    }
    this.#counts.set(plugin, count + 1)
  }

  remove(subscriberIndex: number): void {
    const numbered = this.#numbers.get(subscriberIndex)
    if (numbered === undefined) return
    const { event, owner } = this.#subscriptions[subscriberIndex]!
    const { name } = owner
    this.#counts.set(name, this.#counts.get(name)! - 1)
    this.#subscriptions[subscriberIndex] = undefined
    this.#origins[subscriberIndex] = undefined
    this.#sharing.get(event)?.delete(subscriberIndex)
    this.#numbers.delete(subscriberIndex)
    const used = this.#identities.get(numbered.key)!
    used.delete(numbered.number)
    if (used.size === 0) this.#identities.delete(numbered.key)
  }

  /** Whose an event is, to each group that asks: see `EventFrame`. @param json its payload @param priority see shares.ts */
  sharesOf(event: string, json: string, priority: string): string {
    const sharing = this.#sharing.get(event)
    if (priority === NORMAL && (sharing === undefined || sharing.size === 0)) return ''
    const asking = [...(sharing ?? [])].map((subscriberIndex): Asking => {
      const { options, shares } = this.#subscriptions[subscriberIndex]!
      return { group: options.group ?? this.#identityOf(subscriberIndex), functions: shares }
    })
    return sharesFor(asking, priority, json, (group, fault) => this.onShareFault(group, event, fault))
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** The running subscriber was terminated: it never settles. */
  stopped(): void {
    if (!this.#isCalling) this.#inFlight--
  }

  /** Runs a subscriber in the causal context of its event, and answers exactly once. */
  handle(deliveryId: number, frame: EventFrame, sink: DeliverySink): void {
    if (!this.isSound()) return
    const subscription = this.#subscriptions[frame.subscriber]
    // It unsubscribed while the event was on its way.
    if (subscription === undefined) return sink.delivered(deliveryId)
    if (this.#lostBefore.size > 0 && this.#lostBefore.delete(deliveryId)) return sink.delivered(deliveryId)
    if (frame.seq > 0 && !this.mayBegin()) return sink.failed(deliveryId, notBegun())
    const wantsReply = (frame.attempt & WANTS_REPLY) !== 0
    // Uses the same string objects each time: a newly cut string has no hash yet when it is looked up.
    const origin = this.#origins[frame.subscriber]!
    const span = this.tracing === null ? null : openSpan(this.tracing, origin.handler, subscription, frame)
    const event = new DeliveredEvent(frame, deliveryId, this)
    let outcome: unknown
    let isLater: boolean
    this.#isCalling = true
    try {
      const { id: eventId, requestId } = frame
      const cause = { eventId, ancestors: ancestorsBelow(frame), requestId, trace: span, origin }
      const call = subscription.options.transaction === true ? this.#callInTransaction : callSubscriber
      outcome = causality.run(cause, call, subscription, frame, event)
      // Inside the `try`: a returned value may throw when its `then` is read.
      isLater = isThenable(outcome) || keepsReport(event, subscription)
    } catch (thrown) {
      if (DeliveredEvent.reportOf(event) === null) {
        span?.fail(thrown)
        return this.#failed(sink, deliveryId, frame, thrown)
      }
      outcome = Promise.reject(thrown)
      isLater = true
    } finally {
      this.#isCalling = false
      this.isSound(origin)
    }
    if (!isLater) {
      span?.end()
      return settle(sink, deliveryId, outcome, wantsReply)
    }
    this.#inFlight++
    this.#running.set(deliveryId, event)
    // A promise of a library may have any `then`.
    Promise.resolve(outcome).then(
      (value) => {
        const ended = (): void => {
          this.#ended(deliveryId, event)
          span?.end()
          settle(sink, deliveryId, value, wantsReply)
        }
        if (keepsReport(event, subscription)) void this.#report(event, subscription, value).then(ended)
        else ended()
      },
      (thrown) => {
        const ended = (): void => {
          this.#ended(deliveryId, event)
          span?.fail(thrown)
          // Nobody waits for it any more: it is not tried again here, and needs no warning.
          if (event.isLost) sink.failed(deliveryId, lostError(thrown, event))
          else this.#failed(sink, deliveryId, frame, thrown)
        }
        const report = DeliveredEvent.reportOf(event)
        // The next attempt goes on behind it.
        if (report === null) ended()
        else void report.failed().then(ended)
      },
    )
  }

  heartbeat(deliveryId: number): void {
    this.onHeartbeat(deliveryId)
  }

  reportOf(event: DeliveredEvent): HandlerReport {
    const subscriber = DeliveredEvent.subscriberOf(event)
    const { broadcast, group = this.#identityOf(subscriber) } = this.#subscriptions[subscriber]!.options
    if (broadcast === true)
      throw new HeddleError(
        'EVENT_OPTIONS_INVALID',
        'A subscriber with broadcast reports nothing: each thread has its own delivery',
      )
    if (this.reports === null)
      throw new HeddleError('EVENT_BUS_UNAVAILABLE', 'This thread cannot store what a handler reports')
    const { id: eventId, attempt } = event
    return this.reports.make({ eventId, group, attempt }, () => !event.isLost)
  }

  /** Nothing of a handler that was not called, since its work was done before. */
  async #report(event: DeliveredEvent, { options }: Subscription, value: unknown): Promise<void> {
    if (options.transaction === true && !this.#called.delete(event)) return
    try {
      await DeliveredEvent.requireReport(event).end(value, options.resultMs)
    } catch (error) {
      this.reports?.log(`The result of ${event.id} is not kept: ${messageWithCauses(error)}`)
    }
  }

  #ended(deliveryId: number, event: DeliveredEvent): void {
    this.#inFlight--
    this.#running.delete(deliveryId)
    event.ended()
  }

  /** The delivery is no longer its handler's, or soon will not be: its signal is aborted. */
  lose(deliveryId: number, reason: LostReason): void {
    const running = this.#running.get(deliveryId)
    if (running !== undefined) return running.lose(reason)
    // It may have ended meanwhile.
    if (reason === 'stopped' || reason === 'moved') return
    this.#lostBefore.add(deliveryId)
    if (this.#lostBefore.size > LOST_MAX)
      for (const oldest of this.#lostBefore) return void this.#lostBefore.delete(oldest)
  }

  #failed(sink: DeliverySink, deliveryId: number, frame: EventFrame, thrown: unknown): void {
    const error = deliveryError(thrown)
    const subscription = this.#subscriptions[frame.subscriber]
    const attempt = frame.attempt & (WANTS_REPLY - 1)
    const retries = subscription?.options.retries ?? SUBSCRIBER_DEFAULTS.retries
    if (subscription === undefined) return sink.failed(deliveryId, error)
    const { name: plugin } = subscription.owner
    const { id, event, requestId } = frame
    // A request for a reply waits for nobody.
    const isRequest = (frame.attempt & WANTS_REPLY) !== 0
    if (isRequest) delete error.later
    if (error.later !== undefined) return sink.failed(deliveryId, error)
    const mayWait = this.#waitsForTools && !isRequest && error.unrecoverable !== true
    if (mayWait && isAway(thrown)) error.away = true
    if (error.away && !this.#away.isDue(String(frame.subscriber))) return sink.failed(deliveryId, error)
    if (error.away || (attempt <= retries && error.unrecoverable !== true)) {
      const subscriber = this.#identityOf(frame.subscriber)
      this.onFailedAttempt({ plugin, subscriber, id, event, requestId, attempt, retries, error })
    } else this.onFailure({ event, event_id: id, subscriber: plugin, error: error.message, attempts: attempt }, frame)
    sink.failed(deliveryId, error)
  }

  readonly #callInTransaction = (subscription: Subscription, frame: EventFrame, event: DeliveredEvent): unknown => {
    const { owner, handler, options } = subscription
    const group = options.group ?? this.#identityOf(frame.subscriber)
    const handle = async (tx: Tx): Promise<unknown> => {
      // It may have been lost while it waited for a connection.
      event.requireOwn()
      this.#called.add(event)
      const value = await callSubscriber(subscription, frame, event, tx)
      event.requireOwn()
      return value
    }
    return this.transactions!.handleOnce(frame.id, group, owner.name, handler, handle)
  }
}

/** True if its result is kept, or it has reported. */
const keepsReport = (event: DeliveredEvent, { options }: Subscription): boolean =>
  options.resultMs !== undefined || DeliveredEvent.reportOf(event) !== null

/** The process stops: what ends because of that counts as an outage and not as an attempt. */
function lostError(thrown: unknown, { isStopped }: DeliveredEvent): WireError {
  const error = deliveryError(thrown)
  if (isStopped) error.away = true
  return error
}

/** Counts as an outage, not as an attempt: the delivery waits, and returns to the store if its slot is lost. */
function notBegun(): WireError {
  const error = deliveryError(new HeddleError('EVENT_BUS_UNAVAILABLE', 'The lease of this process is over'))
  error.away = true
  return error
}

function settle(sink: DeliverySink, deliveryId: number, value: unknown, wantsReply: boolean): void {
  if (!wantsReply || typeof value !== 'object' || value === null) return sink.delivered(deliveryId)
  let json: string | undefined
  try {
    json = toJson(value)
  } catch (thrown) {
    return sink.failed(deliveryId, deliveryError(thrown))
  }
  // An object whose `toJSON` returns nothing is no reply.
  if (json === undefined) return sink.delivered(deliveryId)
  sink.reply(deliveryId, json)
}

function openSpan(tracing: CodeTracing, identity: string, { owner }: Subscription, frame: EventFrame): OpenSpan {
  const attempt = frame.attempt & (WANTS_REPLY - 1)
  const attributes = {
    'code.function.name': identity,
    'heddle.plugin': owner.name,
    'heddle.event.id': frame.id,
    'heddle.event.attempt': attempt,
  }
  const { requestId, id: eventId, event, payload } = frame
  const work: Work = { kind: 'event', requestId, eventId, event, attempt, payload }
  return tracing.open(frame.trace, identity, attributes, work)
}

function callSubscriber({ owner, handler }: Subscription, frame: EventFrame, event: DeliveredEvent, tx?: Tx): unknown {
  const data = parseJson(frame.payload) as Payload
  return tx === undefined ? handler.call(owner.instance, data, event) : handler.call(owner.instance, data, event, tx)
}
