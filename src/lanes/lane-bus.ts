import { causality } from '../causality/context.ts'
import type {
  BusTransport,
  DeadLetter,
  EventRecord,
  FailureListener,
  Payload,
  PublishOptions,
  Subscription,
  TopologyEntry,
} from '../contracts/event-bus.ts'
import { HeddleError } from '../errors/catalogue.ts'
import { fromWire, type WireError } from '../errors/wire.ts'
import type { EventServer } from '../events/event-server.ts'
import { Fifo } from '../events/fifo.ts'
import { encodePayload } from '../events/payload.ts'
import { publicationOf } from '../events/publication.ts'
import { recordOf } from '../events/trace-ring.ts'
import { eventMaxBytes, writeEvent } from '../frames/event-frame.ts'
import { KIND } from '../frames/frame-kinds.ts'
import { added, tellAll } from '../kernel/listeners.ts'
import type { LaneCalls } from './lane-calls.ts'
import type { FailureRecord, Feed, SubscriptionManifest } from './messages.ts'
import type { Outbox } from './outbox.ts'

interface Publishing {
  seq: number
  id: string
  resolve: (id: string) => void
  reject: (error: Error) => void
  isRefused: boolean
}

export interface LaneBusOptions {
  outbox: Outbox
  calls: LaneCalls
  events: EventServer
  onSubscribe: (local: number, subscription: SubscriptionManifest) => void
  onUnsubscribe: (local: number) => void
  onListen: (feed: Feed, on: boolean) => void
  onListenerFault: (kind: string, thrown: unknown) => void
}

/** The event bus as a lane sees it: publications go to the hub over the ring, deliveries come back the same way. */
export class LaneBus implements BusTransport {
  readonly #options: LaneBusOptions
  readonly #listeners: ((record: EventRecord) => void)[] = []
  readonly #failureListeners: FailureListener[] = []
  /** Sent and not answered, in the order in which they were sent. */
  readonly #publishing = new Fifo<Publishing>()
  /** Event → subscribing plugins, as the primary last told: for the records that this lane's own listeners get at once. */
  subscribersOf: Record<string, string[]> = {}
  #seq = 0

  constructor(options: LaneBusOptions) {
    this.#options = options
  }

  publish(emitter: string, event: string, payload: Payload, options: PublishOptions): Promise<string> {
    return new Promise((resolve, reject) => {
      const { json, keys } = encodePayload(event, payload)
      const frame = publicationOf(emitter, event, json, keys, options)
      const { outbox } = this.#options
      const at = outbox.begin(eventMaxBytes(frame, 'text'), true)
      if (at < 0) throw new HeddleError('EVENT_BUS_FULL', 'Too many events wait to leave this lane')
      const seq = this.#seq
      this.#seq = (seq + 1) & 0x7fffffff
      outbox.end(writeEvent(outbox, outbox.doubles, at, frame, 'text'), KIND.PUBLISH, seq)
      this.#publishing.push({ seq, id: frame.id, resolve, reject, isRefused: false })
      if (this.#listeners.length > 0) {
        const subscribers = this.subscribersOf[event] ?? []
        this.#tell(recordOf({ ...frame, subscribers }))
      }
    })
  }

  /** Everything up to `seq` is with the hub, but for what was refused. */
  taken(seq: number): void {
    for (;;) {
      const next = this.#publishing.peek()
      // Sequence numbers wrap: compare by distance.
      if (next === undefined || ((seq - next.seq) & 0x7fffffff) > 0x3fffffff) return
      this.#publishing.shift()
      if (!next.isRefused) next.resolve(next.id)
    }
  }

  refused(seq: number, error: WireError): void {
    const publishing = this.#publishing.find((each) => each.seq === seq)
    if (publishing === undefined) return
    publishing.isRefused = true
    publishing.reject(fromWire(error))
  }

  async request(emitter: string, event: string, payload: Payload, timeoutMs: number): Promise<Payload> {
    const { json, keys } = encodePayload(event, payload)
    const context = causality.getStore()
    const args = [emitter, event, json, keys, context?.eventId ?? null, context?.requestId ?? null, timeoutMs]
    return JSON.parse((await this.#options.calls.call('#host', 'request', args)) as string) as Payload
  }

  subscribe(subscription: Subscription): () => void {
    const { local, identity } = this.#options.events.add(subscription)
    const { owner, event, options } = subscription
    this.#options.onSubscribe(local, { plugin: owner.name, event, identity, options })
    let isOn = true
    return () => {
      if (!isOn) return
      isOn = false
      this.#options.events.remove(local)
      this.#options.onUnsubscribe(local)
    }
  }

  addListener(listener: (record: EventRecord) => void): () => void {
    return this.#listen('traces', this.#listeners, listener)
  }

  addFailureListener(listener: FailureListener): () => void {
    return this.#listen('failures', this.#failureListeners, listener)
  }

  #listen<T>(feed: Feed, list: T[], listener: T): () => void {
    if (list.length === 0) this.#options.onListen(feed, true)
    const remove = added(list, listener)
    return () => {
      remove()
      if (list.length === 0) this.#options.onListen(feed, false)
    }
  }

  /** Records of other threads. */
  fed(records: readonly EventRecord[], failures: readonly FailureRecord[]): void {
    for (const record of records) this.#tell(record)
    for (const { failure, requestId } of failures) {
      causality.run({ eventId: failure.event_id, requestId }, () =>
        tellAll(this.#failureListeners, failure, (thrown) => this.#options.onListenerFault('failure listener', thrown)),
      )
    }
  }

  #tell(record: EventRecord): void {
    tellAll(this.#listeners, record, (thrown) => this.#options.onListenerFault('event listener', thrown))
  }

  history(): Promise<EventRecord[]> {
    return this.#options.calls.call('#host', 'history', []) as Promise<EventRecord[]>
  }
  topology(): Promise<Record<string, TopologyEntry>> {
    return this.#options.calls.call('#host', 'topology', []) as Promise<Record<string, TopologyEntry>>
  }
  deadLetters(): Promise<DeadLetter[]> {
    return this.#options.calls.call('#host', 'deadLetters', []) as Promise<DeadLetter[]>
  }
  replayDeadLetter(id: string): Promise<boolean> {
    return this.#options.calls.call('#host', 'replayDeadLetter', [id]) as Promise<boolean>
  }
  deleteDeadLetter(id: string): Promise<boolean> {
    return this.#options.calls.call('#host', 'deleteDeadLetter', [id]) as Promise<boolean>
  }
}
