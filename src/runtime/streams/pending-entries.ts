// Entries that are being handled, and their acknowledgement.

import type { DeliverySpan, DeliveryTracing } from '../../contracts/tracing.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import { Numbered } from '../../core/collections/numbered.ts'
import type { WireError } from '../../core/errors/wire.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { type EventFrame, WANTS_REPLY } from '../../transport/frames/event-frame.ts'
import type { StreamHandOver } from '../../transport/stream-messages.ts'
import type { DeliverySink } from '../events/event-server.ts'
import { isNoGroup } from './consumers.ts'
import { decodeEntry, type StreamEvent } from './entry.ts'
import { eventOf } from './keys.ts'
import { retryWhile } from './publisher.ts'
import type { Entry, ReplyOutcome, StreamCommands } from './stream-commands.ts'
import type { Group, ThreadGroups } from './thread-groups.ts'

/** Before an acknowledgement that failed is sent again, milliseconds. */
const RETRY_MS = 250

interface Batch {
  readonly stream: string
  readonly group: string
  ids: string[]
}

/** An acknowledgement waits so long for others and for the next read, so that they are sent together; milliseconds. */
const GATHER_MS = 2

/** Acknowledges entries: those of a short time in one command, which is sent again until the store has it. */
export class Acknowledger {
  readonly #commands: StreamCommands
  readonly #onConfirmed: (stream: string, group: string, ids: readonly string[]) => void
  readonly #batches = new Map<string, Map<string, Batch>>()
  /** Batches that are sent and not confirmed. */
  #sent: Batch[] = []
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  /** Acknowledgements that are not confirmed yet. */
  open = 0

  constructor(
    commands: StreamCommands,
    onConfirmed: (stream: string, group: string, ids: readonly string[]) => void = () => {},
  ) {
    this.#commands = commands
    this.#onConfirmed = onConfirmed
  }

  add(stream: string, group: string, entryId: string): void {
    this.open++
    let groups = this.#batches.get(stream)
    if (groups === undefined) {
      groups = new Map()
      this.#batches.set(stream, groups)
    }
    const batch = groups.get(group)
    if (batch === undefined) groups.set(group, { stream, group, ids: [entryId] })
    else batch.ids.push(entryId)
    this.#timer ??= setTimeout(this.flush, GATHER_MS)
  }

  /** The entries of a group whose acknowledgement is not confirmed. */
  idsOf(stream: string, group: string): string[] {
    const gathered = this.#batches.get(stream)?.get(group)?.ids ?? []
    const sent = this.#sent.filter((batch) => batch.stream === stream && batch.group === group)
    return [...gathered, ...sent.flatMap(({ ids }) => ids)]
  }

  /** Sends the acknowledgements that have gathered: another command goes out now, or somebody waits for them. */
  readonly flush = (): void => {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const groups of this.#batches.values()) {
      for (const batch of groups.values()) {
        if (batch.ids.length === 0) continue
        void this.#sendBatch({ ...batch })
        batch.ids = []
      }
    }
  }

  async #sendBatch(batch: Batch): Promise<void> {
    const { stream, group, ids } = batch
    this.#sent.push(batch)
    await retryWhile(
      () => !this.#isClosed,
      () => this.#commands.acknowledge(stream, group, ids),
      // A group that has gone has nothing pending any more.
      { pauseMs: RETRY_MS, isFinal: isNoGroup },
    )
    this.#sent = this.#sent.filter((each) => each !== batch)
    this.open -= ids.length
    this.#onConfirmed(stream, group, ids)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#isClosed = true
  }
}

/** How long until the store is asked again whether another thread has finished an event, milliseconds: at first, and at most. */
const CHECK_MS = 5
const CHECK_MAX_MS = 200

/** Says of each entry of a stream whether a group has finished it. */
type Finished = (stream: string, group: string, entryIds: readonly string[]) => Promise<boolean[]>

interface Waiting {
  readonly stream: string
  readonly group: string
  readonly after: string
  readonly run: () => void
}

/**
 * Keeps events with one ordering key in their order, whichever thread handles them: each waits until the one before it is
 * acknowledged, or a dead letter. When another thread or process finishes that one, the store is asked for it.
 */
export class KeyGate {
  readonly #finished: Finished
  #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | undefined
  #pauseMs = CHECK_MS
  #isClosed = false

  constructor(finished: Finished) {
    this.#finished = finished
  }

  /** Runs `run` when the group has finished the entry `after`. */
  wait(stream: string, group: string, after: string, run: () => void): void {
    this.#waiting.push({ stream, group, after, run })
    this.#pauseMs = CHECK_MS
    this.#checkSoon()
  }

  get size(): number {
    return this.#waiting.length
  }

  /** The store has confirmed acknowledgements of this thread: what waits for these entries goes on at once. */
  acknowledged(stream: string, group: string, entryIds: readonly string[]): void {
    if (this.#waiting.length === 0) return
    const done = new Set(entryIds)
    this.#open((waiting) => waiting.stream === stream && waiting.group === group && done.has(waiting.after))
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#waiting = []
  }

  #open(isFree: (waiting: Waiting) => boolean): void {
    const free = this.#waiting.filter(isFree)
    if (free.length === 0) return
    this.#waiting = this.#waiting.filter((waiting) => !free.includes(waiting))
    this.#pauseMs = CHECK_MS
    for (const { run } of free) run()
  }

  #checkSoon(): void {
    if (this.#isClosed) return
    this.#timer ??= setTimeout(() => void this.#check(), this.#pauseMs)
  }

  async #check(): Promise<void> {
    this.#pauseMs = Math.min(CHECK_MAX_MS, this.#pauseMs * 2)
    const byGroup = new Map<string, Waiting[]>()
    for (const waiting of this.#waiting) {
      const key = `${waiting.stream}\0${waiting.group}`
      byGroup.set(key, [...(byGroup.get(key) ?? []), waiting])
    }
    const free = new Set<Waiting>()
    await Promise.all(
      [...byGroup.values()].map(async (all) => {
        const { stream, group } = all[0]!
        try {
          const answers = await this.#finished(
            stream,
            group,
            all.map(({ after }) => after),
          )
          all.forEach((waiting, n) => {
            if (answers[n]) free.add(waiting)
          })
        } catch {
          // The store does not answer: it is asked again.
        }
      }),
    )
    this.#timer = undefined
    this.#open((waiting) => free.has(waiting))
    if (this.#waiting.length > 0) this.#checkSoon()
  }
}

/** Pending entries of one thread at most: read, and not answered. */
const PENDING_MAX = 1024
/** With about so many characters of payload pending, a thread reads no more. */
const PENDING_MAX_CHARS = 32 << 20
/** How often deadlines are checked, milliseconds. */
const SWEEP_MS = 100
/** A loop that has not turned for so long was blocked, milliseconds: handlers whose time was up meanwhile may have been ready before. */
const BLOCKED_MS = 1000
/** After this time an entry that was handed over certainly is not this thread's any more, milliseconds. */
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
  /** Told whenever an entry is no longer pending: there may be room again, or none may be left. */
  settled: () => void
  /** Null while tracing is off. */
  tracing: DeliveryTracing | null
}

/** One entry that is pending. */
interface PendingEntry {
  readonly group: Group
  readonly entry: StreamEvent
  subscriberIndex: number
  /** When the attempt counts as failed, milliseconds since the epoch; 0: it has not begun. */
  deadlineMs: number
  /** Set when the delivery has begun and is traced. */
  span: DeliverySpan | null
}

/**
 * The pending entries of one thread: each from when it is read until the store has confirmed that it is done.
 * This thread does not repeat an event that has failed: it hands the entry over to the hub, and so all entries of a group that handles few at
 * a time.
 */
export class PendingEntries implements DeliverySink {
  readonly #options: PendingEntriesOptions
  /** Entries that a subscriber handles, by delivery id. */
  readonly #begun = new Numbered<PendingEntry>()
  /** Entries that wait for the one before them with the same key. The gate forgets entries that become free together at once; here each counts until its turn. */
  readonly #waitingForKey = new Set<PendingEntry>()
  readonly #gate: KeyGate
  readonly #acks: Acknowledger
  readonly #sweepTimer: NodeJS.Timeout
  readonly #handedOver = new Fifo<{ group: Group; entryId: string; untilMs: number }>()
  /** Characters of all their payloads. */
  #chars = 0
  #lastDelivery = 0
  #lastSweepMs = steadyMs()
  #isStopping = false

  constructor(options: PendingEntriesOptions) {
    this.#options = options
    this.#gate = new KeyGate((stream, group, ids) => options.commands.finished(stream, group, ids))
    this.#acks = new Acknowledger(options.commands, (stream, group, ids) => this.#acknowledged(stream, group, ids))
    this.#sweepTimer = setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  /** Entries that are not answered. */
  get load(): number {
    return this.#begun.size + this.#waitingForKey.size
  }

  /** How many more entries this thread may have; 0 or less: none. */
  get room(): number {
    return this.#chars >= PENDING_MAX_CHARS ? 0 : PENDING_MAX - this.load
  }

  /** Entries that are not answered, or whose acknowledgement the store has not confirmed. */
  get size(): number {
    return this.load + this.#acks.open
  }

  /**
   * The entries of a group that are pending, and those that were handed over a short time ago. It looks through all of this thread's: a Set
   * kept up for each entry would cost more, and keep old tables of it alive.
   */
  idsOf(group: Group): Set<string> {
    const ids = new Set(this.#acks.idsOf(group.stream, group.consumerGroup))
    for (const pending of [...this.#begun.items(), ...this.#waitingForKey])
      if (pending.group === group) ids.add(pending.entry.entryId)
    for (const handedOver of this.#handedOver) if (handedOver.group === group) ids.add(handedOver.entryId)
    return ids
  }

  // ── from the stream ───────────────────────────────────────────────────────

  take(group: Group, entryId: string, fields: Entry[1]): void {
    group.pending++
    // It was cut from the stream while it was on its way.
    if (fields === null) return this.#acknowledge(group, entryId)
    const entry = decodeEntry(group.event, entryId, fields)
    if (typeof entry === 'string') {
      const subscriberIndex = group.members[0]?.subscriberIndex ?? -1
      return this.#handOver(group, { entryId, frame: null, replyTo: null }, { subscriberIndex, fault: entry })
    }
    if (entry.onlyGroup !== null && entry.onlyGroup !== group.consumerGroup) return this.#acknowledge(group, entryId)
    if (entry.replica !== this.#options.replica) this.#options.received(entry.frame)
    const pending: PendingEntry = { group, entry, subscriberIndex: -1, deadlineMs: 0, span: null }
    this.#chars += entry.frame.payload.length
    if (entry.after === null) return this.#begin(pending)
    this.#waitingForKey.add(pending)
    this.#gate.wait(group.stream, group.consumerGroup, entry.after, () => {
      this.#waitingForKey.delete(pending)
      this.#begin(pending)
    })
  }

  #begin(pending: PendingEntry): void {
    const { group, entry } = pending
    const { groups, tracing, serve } = this.#options
    const subscriberIndex = groups.nextSubscriber(group)
    // The subscriber has left this thread meanwhile; another thread may have it.
    if (subscriberIndex === null) {
      this.#chars -= entry.frame.payload.length
      return this.#handOver(group, entry, { subscriberIndex: -1, expiresMs: entry.expiresMs })
    }
    if (entry.expiresMs !== 0 && entry.expiresMs < Date.now()) {
      this.#chars -= entry.frame.payload.length
      if (entry.replyTo !== null) this.#reply(entry.replyTo, 'failed', 'The request has expired before it was handled')
      return this.#acknowledge(group, entry.entryId)
    }
    if (group.isBounded) {
      this.#chars -= entry.frame.payload.length
      return this.#handOver(group, entry, { subscriberIndex, expiresMs: entry.expiresMs })
    }
    pending.subscriberIndex = subscriberIndex
    pending.deadlineMs = steadyMs() + group.timeoutMs
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
    if (pending !== undefined) this.#fail(pending, error.message, error.unrecoverable)
  }

  /** @returns undefined for an entry that was given up: it is handed over by now */
  #removeBegun(deliveryId: number): PendingEntry | undefined {
    const pending = this.#begun.take(deliveryId)
    if (pending === undefined) return undefined
    this.#chars -= pending.entry.frame.payload.length
    return pending
  }

  #reply(replyTo: string, outcome: ReplyOutcome, text: string): void {
    this.#options.commands.reply(replyTo, outcome, text).catch(() => {
      // The request ends with its time limit.
    })
  }

  #endSpan({ span, group, entry: { frame } }: PendingEntry): void {
    if (span === null) return
    const { event, id: eventId, requestId } = frame
    this.#options.tracing!.end(span, { event, eventId, group: group.name, requestId }, false)
  }

  /** Fails the deliveries whose time is up, and forgets entries that were handed over long ago. */
  #sweep(): void {
    const nowMs = steadyMs()
    const wasBlocked = nowMs - this.#lastSweepMs > BLOCKED_MS
    this.#lastSweepMs = nowMs
    if (wasBlocked) return
    for (const id of this.#begun.numbers()) {
      const pending = this.#begun.get(id)!
      if (pending.deadlineMs + SWEEP_MS > nowMs) continue
      this.#removeBegun(id)
      this.#fail(pending, `The subscriber did not finish within ${pending.group.timeoutMs} ms`)
    }
    for (let first = this.#handedOver.peek(); first !== undefined && first.untilMs < nowMs; ) {
      first.group.pending--
      this.#handedOver.shift()
      first = this.#handedOver.peek()
    }
  }

  // ── done or handed over ───────────────────────────────────────────────────────────

  /** An attempt has failed. The span is handed over too: it ends when the hub has finished the delivery. */
  #fail({ group, entry, subscriberIndex, span }: PendingEntry, fault: string, isUnrecoverable = false): void {
    if (span !== null) entry.frame.trace = span.parent
    this.#handOver(group, entry, { subscriberIndex, fault, isUnrecoverable, span })
  }

  #handOver(
    group: Group,
    { entryId, frame, replyTo }: Pick<StreamHandOver, 'entryId' | 'frame' | 'replyTo'>,
    how: Pick<StreamHandOver, 'subscriberIndex'> & Partial<StreamHandOver>,
  ): void {
    const { handOver, settled } = this.#options
    // Of such a group all are handed over, far too many to remember; the hub knows those that it has.
    if (group.isBounded) group.pending--
    else this.#handedOver.push({ group, entryId, untilMs: steadyMs() + HANDED_OVER_MS })
    const { event, consumerGroup } = group
    const untried = { fault: null, isUnrecoverable: false, expiresMs: 0, span: null }
    handOver({ event, group: consumerGroup, entryId, frame, replyTo, ...untried, ...how })
    settled()
  }

  #acknowledge({ stream, consumerGroup }: Group, entryId: string): void {
    this.#acks.add(stream, consumerGroup, entryId)
    // The next entry with the same key waits for this acknowledgement.
    if (this.#gate.size > 0 || this.#isStopping) this.#acks.flush()
  }

  #acknowledged(stream: string, consumerGroup: string, ids: readonly string[]): void {
    const { groups, settled } = this.#options
    const group = groups.find(eventOf(stream)!, consumerGroup)
    if (group !== undefined) group.pending -= ids.length
    this.#gate.acknowledged(stream, consumerGroup, ids)
    settled()
  }

  /** Sends the acknowledgements that have gathered. */
  flush(): void {
    this.#acks.flush()
  }

  /** Nothing more is read: from now on no acknowledgement waits for others. */
  stop(): void {
    this.#isStopping = true
  }

  close(): void {
    clearInterval(this.#sweepTimer)
    this.#gate.close()
    this.#acks.close()
  }
}
