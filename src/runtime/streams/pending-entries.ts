import type { DeliverySpan, DeliveryTracing } from '../../contracts/tracing.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import type { WireError } from '../../core/errors/wire.ts'
import { type EventFrame, WANTS_REPLY } from '../../transport/frames/event-frame.ts'
import type { StreamHandOver } from '../../transport/stream-messages.ts'
import type { DeliverySink } from '../events/event-server.ts'
import { Acknowledger } from './acknowledger.ts'
import { decodeEntry, type StreamEvent } from './entry.ts'
import { KeyGate } from './key-gate.ts'
import { eventOf } from './keys.ts'
import type { Entry, ReplyOutcome, StreamCommands } from './stream-commands.ts'
import type { Group, ThreadGroups } from './thread-groups.ts'

/** Events that one thread has in hand at most: read, and not answered. */
const PENDING_MAX = 1024
/** Characters of their payloads, about: with so many it reads no more. */
const PENDING_MAX_CHARS = 32 << 20
/** How often deadlines are looked at, milliseconds. */
const SWEEP_MS = 100
/** A loop that has not turned for so long was blocked: whose time is up meanwhile may have been ready long before, milliseconds. */
const BLOCKED_MS = 1000
/** Entries that were handed over are not this thread's any more within so long, milliseconds. */
const HANDED_OVER_MS = 600_000

export interface PendingEntriesOptions {
  commands: StreamCommands
  groups: ThreadGroups
  /** REPLICA_ID. */
  replica: string
  /** Begins a delivery; its answer comes back to these entries. */
  serve: (deliveryId: number, frame: EventFrame) => void
  /** Told of each event that another replica has published, once per group. */
  received: (frame: EventFrame) => void
  handOver: (handOver: StreamHandOver) => void
  /** Told whenever something has left: there may be room again, or nothing left. */
  settled: () => void
  /** Null while tracing is off. */
  tracing: DeliveryTracing | null
}

/** One entry that is pending. */
interface PendingEntry {
  readonly group: Group
  readonly entry: StreamEvent
  subscriberIndex: number
  /** 0: not begun. */
  deadlineMs: number
  /** From when it was begun, where it is traced. */
  span: DeliverySpan | null
}

/**
 * The pending entries of one thread: each from when it is read until the store knows that it is done.
 * What goes wrong with an event is not for this thread to mend: it pending it over.
 */
export class PendingEntries implements DeliverySink {
  readonly #options: PendingEntriesOptions
  /** Those that are begun, by delivery id. */
  readonly #begun = new Map<number, PendingEntry>()
  /** Not begun. Of those that come free together the gate forgets all at once; here each counts until its turn. */
  #waitingForKey = 0
  readonly #gate: KeyGate
  readonly #acks: Acknowledger
  readonly #sweepTimer: NodeJS.Timeout
  readonly #handedOver = new Fifo<{ group: Group; entryId: string; untilMs: number }>()
  /** Characters of all their payloads. */
  #chars = 0
  #lastDelivery = 0
  #lastSweepMs = Date.now()
  #isStopping = false

  constructor(options: PendingEntriesOptions) {
    this.#options = options
    this.#gate = new KeyGate((stream, group, ids) => options.commands.finished(stream, group, ids))
    this.#acks = new Acknowledger(options.commands, (stream, group, ids) => this.#acknowledged(stream, group, ids))
    this.#sweepTimer = setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  /** Entries that are not answered. */
  get load(): number {
    return this.#begun.size + this.#waitingForKey
  }

  /** For so many entries; 0 or less: for none. */
  get room(): number {
    return this.#chars >= PENDING_MAX_CHARS ? 0 : PENDING_MAX - this.load
  }

  /** Entries that are not answered, or whose acknowledgement the store has not confirmed. */
  get size(): number {
    return this.load + this.#acks.open
  }

  // ── from the stream ───────────────────────────────────────────────────────

  take(group: Group, entryId: string, fields: Entry[1]): void {
    group.pendingIds.add(entryId)
    // Cut from the stream while it was on its way.
    if (fields === null) return this.#acknowledge(group, entryId)
    const entry = decodeEntry(group.event, entryId, fields)
    if (typeof entry === 'string') {
      return this.#handOver(
        group,
        { entryId, frame: null, replyTo: null },
        group.members[0]?.subscriberIndex ?? -1,
        entry,
      )
    }
    if (entry.onlyGroup !== null && entry.onlyGroup !== group.consumerGroup) return this.#acknowledge(group, entryId)
    if (entry.replica !== this.#options.replica) this.#options.received(entry.frame)
    const pending: PendingEntry = { group, entry, subscriberIndex: -1, deadlineMs: 0, span: null }
    this.#chars += entry.frame.payload.length
    if (entry.after === null) return this.#begin(pending)
    this.#waitingForKey++
    this.#gate.wait(group.stream, group.consumerGroup, entry.after, () => {
      this.#waitingForKey--
      this.#begin(pending)
    })
  }

  #begin(pending: PendingEntry): void {
    const { group, entry } = pending
    const { groups, tracing, serve } = this.#options
    const subscriberIndex = groups.nextSubscriber(group)
    // It has unsubscribed here meanwhile: elsewhere it may be wanted.
    if (subscriberIndex === null) {
      this.#chars -= entry.frame.payload.length
      return this.#handOver(group, entry, -1, null)
    }
    if (entry.expiresMs !== 0 && entry.expiresMs < Date.now()) {
      this.#chars -= entry.frame.payload.length
      if (entry.replyTo !== null) this.#reply(entry.replyTo, 'failed', 'The request has expired before it was handled')
      return this.#acknowledge(group, entry.entryId)
    }
    pending.subscriberIndex = subscriberIndex
    pending.deadlineMs = Date.now() + group.timeoutMs
    const id = (this.#lastDelivery % 0x3fffffff) + 1
    this.#lastDelivery = id
    this.#begun.set(id, pending)
    const { frame } = entry
    frame.subscriber = subscriberIndex
    frame.attempt = entry.replyTo === null ? 1 : 1 | WANTS_REPLY
    pending.span = tracing?.begin(frame.trace) ?? null
    if (pending.span !== null) frame.trace = pending.span.traceContext
    serve(id, frame)
  }

  // ── answers ───────────────────────────────────────────────────────────────

  delivered(deliveryId: number): void {
    const pending = this.#removeBegun(deliveryId)
    if (pending === undefined) return
    this.#endSpan(pending)
    this.#acknowledge(pending.group, pending.entry.entryId)
  }

  reply(deliveryId: number, json: string): void {
    const replyTo = this.#begun.get(deliveryId)?.entry.replyTo
    if (replyTo != null) this.#reply(replyTo, 'reply', json)
    this.delivered(deliveryId)
  }

  failed(deliveryId: number, error: WireError): void {
    const pending = this.#removeBegun(deliveryId)
    if (pending !== undefined) this.#fail(pending, error.message)
  }

  /** @returns undefined for one that was given up: it is somebody else's by now */
  #removeBegun(deliveryId: number): PendingEntry | undefined {
    const pending = this.#begun.get(deliveryId)
    if (pending === undefined) return undefined
    this.#begun.delete(deliveryId)
    this.#chars -= pending.entry.frame.payload.length
    return pending
  }

  #reply(replyTo: string, outcome: ReplyOutcome, text: string): void {
    this.#options.commands.reply(replyTo, outcome, text).catch(() => {
      // Whoever asked learns of it by its time limit.
    })
  }

  #endSpan({ span, group, entry: { frame } }: PendingEntry): void {
    if (span === null) return
    const { event, id: eventId, requestId } = frame
    this.#options.tracing!.end(span, { event, eventId, group: group.name, requestId }, false)
  }

  /** Whose time is up fails, and whatever was handed over long ago has left. */
  #sweep(): void {
    const nowMs = Date.now()
    const wasBlocked = nowMs - this.#lastSweepMs > BLOCKED_MS
    this.#lastSweepMs = nowMs
    if (wasBlocked) return
    for (const [id, pending] of this.#begun) {
      if (pending.deadlineMs + SWEEP_MS > nowMs) continue
      this.#removeBegun(id)
      this.#fail(pending, `The subscriber did not finish within ${pending.group.timeoutMs} ms`)
    }
    for (let first = this.#handedOver.peek(); first !== undefined && first.untilMs < nowMs; ) {
      first.group.pendingIds.delete(first.entryId)
      this.#handedOver.shift()
      first = this.#handedOver.peek()
    }
  }

  // ── out of hand ───────────────────────────────────────────────────────────

  /** An attempt at it has failed. Its span goes with it: whoever brings it to its end ends that too. */
  #fail({ group, entry, subscriberIndex, span }: PendingEntry, fault: string): void {
    if (span !== null) entry.frame.trace = span.parent
    this.#handOver(group, entry, subscriberIndex, fault, span)
  }

  #handOver(
    group: Group,
    { entryId, frame, replyTo }: Pick<StreamHandOver, 'entryId' | 'frame' | 'replyTo'>,
    subscriberIndex: number,
    fault: string | null,
    span: DeliverySpan | null = null,
  ): void {
    const { handOver, settled } = this.#options
    this.#handedOver.push({ group, entryId, untilMs: Date.now() + HANDED_OVER_MS })
    handOver({ event: group.event, group: group.consumerGroup, subscriberIndex, entryId, frame, replyTo, fault, span })
    settled()
  }

  #acknowledge({ stream, consumerGroup }: Group, entryId: string): void {
    this.#acks.add(stream, consumerGroup, entryId)
    // Whoever comes behind it with the same key waits for this.
    if (this.#gate.size > 0 || this.#isStopping) this.#acks.flush()
  }

  #acknowledged(stream: string, consumerGroup: string, ids: readonly string[]): void {
    const { groups, settled } = this.#options
    const pendingIds = groups.find(eventOf(stream)!, consumerGroup)?.pendingIds
    if (pendingIds !== undefined) for (const id of ids) pendingIds.delete(id)
    this.#gate.acknowledged(stream, consumerGroup, ids)
    settled()
  }

  /** Acknowledgements that have gathered go out now. */
  flush(): void {
    this.#acks.flush()
  }

  /** Nothing more will come: no acknowledgement waits for others. */
  stop(): void {
    this.#isStopping = true
  }

  close(): void {
    clearInterval(this.#sweepTimer)
    this.#gate.close()
    this.#acks.close()
  }
}
