import type { SubscribeOptions } from '../contracts/event-bus.ts'
import type { DeliverySpan, DeliveryTracing } from '../contracts/tracing.ts'
import type { WireError } from '../errors/wire.ts'
import { type EventFrame, WANTS_REPLY } from '../frames/event-frame.ts'
import type { StreamHandOver } from '../lanes/messages.ts'
import { Acknowledger } from './acknowledger.ts'
import { isNoGroup } from './consumers.ts'
import { decodeEntry, type StreamEvent } from './entry.ts'
import { KeyGate } from './key-gate.ts'
import { broadcastGroupOf, eventOf, groupOf, streamOf } from './keys.ts'
import type { Entry, ReplyOutcome, StreamCommands } from './stream-commands.ts'

/** Events that one thread has in hand at most: read, and not answered. */
export const IN_HAND_MAX = 1024
/** Characters of their payloads, about: with so many it reads no more. */
const IN_HAND_MAX_CHARS = 32 << 20
/** Characters of one read, about, by the largest payload of the one before. */
const READ_MAX_CHARS = 8 << 20
/** Where an entry of ours has its payload. */
const PAYLOAD = 3
/** Entries of one group that are read at a time: at most, and at first. */
const READ_BATCH_MAX = 256
const READ_BATCH_MIN = 16
/** Between two calls for help, milliseconds. */
const ASK_AGAIN_MS = 5
/** Behind a read that found little, the next one waits so long, milliseconds: a read costs the same whatever it finds. */
const GATHER_MS = 2
/** So many entries since it woke up are a flow; behind one it looks so often again before it sleeps. */
const FLOW = 64
const LINGER_ROUNDS = 4
/** Fewer than these in one read: there may be no more. */
const TRICKLE = 8
/** Who has so many in hand and finds more wants another thread to read along. */
const HELP_IN_HAND = 64
/** How often deadlines are looked at, milliseconds. */
const SWEEP_MS = 100
/** A loop that has not turned for so long was blocked: whose time is up meanwhile may have been ready long before, milliseconds. */
const BLOCKED_MS = 1000
/** Before what has failed is tried again, milliseconds. */
const RETRY_MS = 250
/** Entries that were handed over are not this thread's any more within so long, milliseconds. */
const HANDED_OVER_MS = 600_000

export interface ReaderOptions {
  commands: StreamCommands
  /** REPLICA_ID. */
  replica: string
  /** Begins a delivery; its answer comes by `delivered`, `reply` or `failed`. */
  serve: (deliveryId: number, frame: EventFrame) => void
  /** Told of each event that another replica has published, once per group. */
  received: (frame: EventFrame) => void
  handOver: (handOver: StreamHandOver) => void
  /** Null while tracing is off. */
  tracing: DeliveryTracing | null
  /** Everything up to this entry has been read by this thread's groups: wake it for the next. */
  idle: (event: string, upTo: string) => void
  /** There is more than this thread reads at a time: another may help. */
  more: (event: string) => void
  /** This thread has its hands full and sleeps though there may be more; or it has room again, and reads on. */
  full: (event: string, isFull: boolean) => void
  log: (level: 'WARNING' | 'ERROR', message: string) => void
}

/** What this thread reads as one group: its subscribers share the events. */
interface Group {
  readonly event: string
  readonly stream: string
  /** As the subscribers know it. */
  readonly name: string
  readonly isBroadcast: boolean
  /** As the stream knows it. */
  inStream: string
  timeoutMs: number
  /** Its group is there, and what was left of it is taken over. */
  isOpen: boolean
  /** Too many of its events are being tried again. */
  isHeld: boolean
  readonly locals: { local: number; plugin: string }[]
  turn: number
  /** Entries in hand, waiting ones included, and those that are not known to have left. */
  readonly held: Set<string>
}

interface Topic {
  readonly event: string
  readonly groups: Group[]
  isReading: boolean
  /** Entries that are read at a time: more and more, as long as they are dealt with at once. */
  batch: number
  /** Length of the largest payload of the last read. */
  largestChars: number
  /** When it last asked for help. */
  askedMs: number
  /** Woken while it was reading. */
  isWoken: boolean
}

/** One entry in hand. */
interface Hand {
  readonly group: Group
  readonly entry: StreamEvent
  local: number
  /** 0: not begun. */
  deadlineMs: number
  /** From when it was begun, where it is traced. */
  span: DeliverySpan | null
}

interface Round {
  /** The last entry of the stream before the groups read; null when nobody asked. */
  upTo: string | null
  batches: { group: Group; entries: Entry[] }[]
  isFull: boolean
}

/**
 * Reads the streams of one thread's subscribers, runs these, and acknowledges.
 * What goes wrong with an event is not for this thread to mend: it hands it over.
 */
export class StreamReader {
  readonly #options: ReaderOptions
  readonly #topics = new Map<string, Topic>()
  readonly #groupOfLocal = new Map<number, Group>()
  /** By delivery number, which is negative: the hub's are positive. */
  readonly #hands = new Map<number, Hand>()
  readonly #gate: KeyGate
  readonly #acks: Acknowledger
  readonly #sweepTimer: NodeJS.Timeout
  readonly #handedOver: { group: Group; entryId: string; untilMs: number }[] = []
  /** Topics that found no room. */
  readonly #hungry = new Set<Topic>()
  /** Plugins whose subscribers get nothing. */
  readonly #paused = new Set<string>()
  #waitingForKey = 0
  /** Of the payloads of all in hand. */
  #chars = 0
  #lastDelivery = 0
  #consumer = ''
  #lastSweepMs = Date.now()
  #isStopping = false
  readonly #stopWaiters: (() => void)[] = []

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#gate = new KeyGate((stream, group, ids) => options.commands.finished(stream, group, ids))
    this.#acks = new Acknowledger(options.commands, (stream, group, ids) => this.#acknowledged(stream, group, ids))
    this.#sweepTimer = setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  // ── subscribers ───────────────────────────────────────────────────────────

  add(local: number, plugin: string, event: string, identity: string, options: SubscribeOptions): void {
    const name = options.group ?? identity
    let topic = this.#topics.get(event)
    if (topic === undefined) {
      topic = {
        event,
        groups: [],
        isReading: false,
        batch: READ_BATCH_MIN,
        askedMs: 0,
        largestChars: 1,
        isWoken: false,
      }
      this.#topics.set(event, topic)
    }
    let group = topic.groups.find((each) => each.name === name)
    if (group === undefined) {
      const isBroadcast = options.broadcast === true
      group = {
        event,
        stream: streamOf(event),
        name,
        isBroadcast,
        inStream: isBroadcast && this.#consumer !== '' ? broadcastGroupOf(name, this.#consumer) : groupOf(name),
        timeoutMs: 0,
        isOpen: false,
        isHeld: false,
        locals: [],
        turn: 0,
        held: new Set(),
      }
      topic.groups.push(group)
    }
    group.timeoutMs = options.timeoutMs ?? 30_000
    group.locals.push({ local, plugin })
    this.#groupOfLocal.set(local, group)
  }

  remove(local: number): void {
    const group = this.#groupOfLocal.get(local)
    if (group === undefined) return
    this.#groupOfLocal.delete(local)
    group.locals.splice(
      group.locals.findIndex((each) => each.local === local),
      1,
    )
    if (group.locals.length > 0) return
    const { groups } = this.#topics.get(group.event)!
    groups.splice(groups.indexOf(group), 1)
  }

  /** From now on it may read, as this consumer. */
  start(consumer: string): void {
    this.#consumer = consumer
    for (const { groups } of this.#topics.values()) {
      for (const group of groups) if (group.isBroadcast) group.inStream = broadcastGroupOf(group.name, consumer)
    }
  }

  /** The subscribers of a plugin get nothing new, or go on. */
  pause(plugin: string, isPaused: boolean): void {
    if (isPaused) this.#paused.add(plugin)
    else this.#paused.delete(plugin)
  }

  /** A group may be read. */
  open(event: string, inStream: string): void {
    const group = this.#groupInStream(streamOf(event), inStream)
    if (group !== undefined) group.isOpen = true
  }

  hold(event: string, inStream: string, isHeld: boolean): void {
    const group = this.#groupInStream(streamOf(event), inStream)
    if (group !== undefined) group.isHeld = isHeld
  }

  #mayRead({ isOpen, isHeld, locals }: Group): boolean {
    return isOpen && !isHeld && (this.#paused.size === 0 || locals.some(({ plugin }) => !this.#paused.has(plugin)))
  }

  // ── reading ───────────────────────────────────────────────────────────────

  /** There is something in the stream of this event. */
  wake(event: string): void {
    const topic = this.#topics.get(event)
    if (this.#isStopping || this.#consumer === '') return
    // Its subscriber has left meanwhile.
    if (topic === undefined) this.#options.idle(event, '0-0')
    else if (topic.isReading) topic.isWoken = true
    else if (this.#room <= 0) this.#hunger(topic)
    else void this.#read(topic)
  }

  /** Others read it, until there is room here. */
  #hunger(topic: Topic): void {
    this.#hungry.add(topic)
    this.#options.full(topic.event, true)
  }

  async #read(topic: Topic): Promise<void> {
    topic.isReading = true
    topic.isWoken = false
    try {
      topic.batch = READ_BATCH_MIN
      let arrivedInAll = 0
      let lingered = 0
      let next = this.#fetch(topic, true, 0)
      for (;;) {
        const round = await next
        if (round.isFull || this.#load >= HELP_IN_HAND) this.#askForHelp(topic)
        const arrived = round.batches.reduce((sum, { entries }) => sum + entries.length, 0)
        const room = this.#room - arrived
        arrivedInAll += arrived
        lingered = arrived > 0 ? 0 : lingered + 1
        // Behind a flow there is soon more: to fall asleep and be woken costs more than to look again.
        const mayLinger = arrivedInAll >= FLOW && lingered <= LINGER_ROUNDS
        // Who keeps up takes more at a time; who has his hands full leaves more to others.
        if (round.isFull && this.#load <= topic.batch) topic.batch = Math.min(READ_BATCH_MAX, topic.batch * 2)
        const isExhausted = !round.isFull && round.upTo !== null && !topic.isWoken && arrived === 0 && !mayLinger
        const goesOn = !isExhausted && !this.#isStopping && room > 0
        topic.isWoken = false
        // On its way while this batch is handled. While there is plenty, nobody needs to know where the stream ends.
        if (goesOn)
          next = round.isFull ? this.#fetch(topic, false, arrived) : this.#fetchLater(topic, arrived, mayLinger)
        for (const { group, entries } of round.batches) {
          for (const [entryId, fields] of entries) this.#take(group, entryId, fields)
        }
        if (goesOn) continue
        if (this.#isStopping) return this.#stoppedReading(topic)
        topic.isReading = false
        if (isExhausted) return this.#options.idle(topic.event, round.upTo!)
        return this.#hunger(topic)
      }
    } catch (error) {
      this.#readFailed(topic, error)
    }
  }

  #askForHelp(topic: Topic): void {
    const nowMs = performance.now()
    if (nowMs - topic.askedMs < ASK_AGAIN_MS) return
    topic.askedMs = nowMs
    this.#options.more(topic.event)
  }

  /** More may be coming: what comes within a moment is read together. Where the stream ends is asked when it seems to have ended. */
  async #fetchLater(topic: Topic, arrived: number, mayLinger: boolean): Promise<Round> {
    if (arrived > 0 || mayLinger) await new Promise((resolve) => setTimeout(resolve, GATHER_MS))
    return this.#fetch(topic, arrived < TRICKLE && !mayLinger, 0)
  }

  get #load(): number {
    return this.#hands.size + this.#waitingForKey
  }

  get #room(): number {
    return this.#chars >= IN_HAND_MAX_CHARS ? 0 : IN_HAND_MAX - this.#load
  }

  /** @param arrived entries that are read and not yet in hand */
  async #fetch(topic: Topic, wantsEnd: boolean, arrived: number): Promise<Round> {
    const { commands } = this.#options
    this.#acks.flush()
    const groups = topic.groups.filter((group) => this.#mayRead(group))
    const wanted = Math.max(READ_BATCH_MIN, topic.batch - this.#load - arrived)
    const room = Math.floor((this.#room - arrived) / Math.max(1, groups.length))
    const fitting = Math.floor(READ_MAX_CHARS / (topic.largestChars * Math.max(1, groups.length)))
    const count = Math.max(1, Math.min(wanted, room, fitting))
    const [upTo, ...batches] = await Promise.all([
      // Before the groups read, on the same connection: what comes after this entry they may have missed, what comes before they have not.
      wantsEnd ? commands.lastEntryId(streamOf(topic.event)) : null,
      ...groups.map(async (group) => ({
        group,
        entries: await commands.read(group.stream, group.inStream, this.#consumer, count),
      })),
    ])
    topic.largestChars = 1
    for (const { entries } of batches)
      for (const [, fields] of entries)
        topic.largestChars = Math.max(topic.largestChars, fields?.[PAYLOAD]?.length ?? 0)
    return { upTo, batches, isFull: batches.some(({ entries }) => entries.length >= count) }
  }

  /** Whatever the store has given and this thread has not got is read again, once it answers. */
  #readFailed(topic: Topic, error: unknown): void {
    if (this.#isStopping) return this.#stoppedReading(topic)
    setTimeout(() => void this.#again(topic), RETRY_MS)
    if (!isNoGroup(error)) return
    this.#options.log(
      'WARNING',
      `The stream of ${topic.event} or a group of it has gone from the key-value store: its groups are made anew, and read from its beginning`,
    )
  }

  /** The topic counts as reading meanwhile: nothing else may come in between. */
  async #again(topic: Topic): Promise<void> {
    const { commands } = this.#options
    try {
      if (this.#isStopping) return this.#stoppedReading(topic)
      // What is not open yet the primary makes.
      const open = topic.groups.filter(({ isOpen }) => isOpen)
      for (const { stream, inStream } of open) await commands.ensureGroup(stream, inStream, '0')
      for (const group of open) await this.#recheck(group)
    } catch {
      setTimeout(() => void this.#again(topic), RETRY_MS)
      return
    }
    topic.isReading = false
    this.wake(topic.event)
  }

  /** Takes what the store believes to be in this thread's hand and is not: its answer was lost on the way. */
  async #recheck(group: Group): Promise<void> {
    for (let after = '0'; ; ) {
      const entries = await this.#options.commands.readOwn(
        group.stream,
        group.inStream,
        this.#consumer,
        after,
        READ_BATCH_MIN,
      )
      for (const [entryId, fields] of entries) if (!group.held.has(entryId)) this.#take(group, entryId, fields)
      if (entries.length < READ_BATCH_MIN) return
      after = entries.at(-1)![0]
    }
  }

  // ── handling ──────────────────────────────────────────────────────────────

  #take(group: Group, entryId: string, fields: Entry[1]): void {
    group.held.add(entryId)
    // Cut from the stream while it was on its way.
    if (fields === null) return this.#acknowledge(group, entryId)
    const entry = decodeEntry(group.event, entryId, fields)
    if (typeof entry === 'string') {
      return this.#handOver(group, { entryId, frame: null, replyTo: null }, group.locals[0]?.local ?? -1, entry)
    }
    if (entry.onlyGroup !== null && entry.onlyGroup !== group.inStream) return this.#acknowledge(group, entryId)
    if (entry.replica !== this.#options.replica) this.#options.received(entry.frame)
    const hand: Hand = { group, entry, local: -1, deadlineMs: 0, span: null }
    this.#chars += entry.frame.payload.length
    if (entry.after === null) return this.#begin(hand)
    this.#waitingForKey++
    this.#gate.wait(group.stream, group.inStream, entry.after, () => {
      this.#waitingForKey--
      this.#begin(hand)
    })
  }

  #begin(hand: Hand): void {
    const { group, entry } = hand
    const locals = this.#paused.size === 0 ? group.locals : unpaused(group.locals, this.#paused)
    // It has unsubscribed here meanwhile: elsewhere it may be wanted.
    if (locals.length === 0) {
      this.#chars -= entry.frame.payload.length
      return this.#handOver(group, entry, -1, null)
    }
    if (entry.expiresMs !== 0 && entry.expiresMs < Date.now()) {
      this.#chars -= entry.frame.payload.length
      if (entry.replyTo !== null) this.#reply(entry.replyTo, 'failed', 'The request has expired before it was handled')
      return this.#acknowledge(group, entry.entryId)
    }
    hand.local = locals[group.turn++ % locals.length]!.local
    hand.deadlineMs = Date.now() + group.timeoutMs
    this.#lastDelivery = (this.#lastDelivery % 0x3fffffff) + 1
    const id = -this.#lastDelivery
    this.#hands.set(id, hand)
    const { frame } = entry
    frame.a = hand.local
    frame.b = entry.replyTo === null ? 1 : 1 | WANTS_REPLY
    hand.span = this.#options.tracing?.begin(frame.trace) ?? null
    if (hand.span !== null) frame.trace = hand.span.carrier
    this.#options.serve(id, frame)
  }

  /** @returns undefined for one that was given up: it is somebody else's by now */
  #lay(deliveryId: number): Hand | undefined {
    const hand = this.#hands.get(deliveryId)
    if (hand === undefined) return undefined
    this.#hands.delete(deliveryId)
    this.#chars -= hand.entry.frame.payload.length
    return hand
  }

  delivered(deliveryId: number): void {
    const hand = this.#lay(deliveryId)
    if (hand === undefined) return
    this.#endSpan(hand)
    this.#acknowledge(hand.group, hand.entry.entryId)
  }

  reply(deliveryId: number, json: string): void {
    const replyTo = this.#hands.get(deliveryId)?.entry.replyTo
    if (replyTo != null) this.#reply(replyTo, 'reply', json)
    this.delivered(deliveryId)
  }

  failed(deliveryId: number, error: WireError): void {
    const hand = this.#lay(deliveryId)
    if (hand !== undefined) this.#handOverHand(hand, error.message)
  }

  #reply(replyTo: string, outcome: ReplyOutcome, text: string): void {
    this.#options.commands.reply(replyTo, outcome, text).catch(() => {
      // Whoever asked learns of it by its time limit.
    })
  }

  #endSpan({ span, group, entry: { frame } }: Hand): void {
    if (span === null) return
    const { event, id: eventId, requestId } = frame
    this.#options.tracing!.end(span, { event, eventId, group: group.name, requestId }, false)
  }

  /** An attempt at it has failed. Its span goes with it: whoever brings it to its end ends that too. */
  #handOverHand({ group, entry, local, span }: Hand, fault: string): void {
    if (span !== null) entry.frame.trace = span.parent
    this.#handOver(group, entry, local, fault, span)
  }

  #handOver(
    group: Group,
    { entryId, frame, replyTo }: Pick<StreamHandOver, 'entryId' | 'frame' | 'replyTo'>,
    local: number,
    fault: string | null,
    span: DeliverySpan | null = null,
  ): void {
    group.held.add(entryId)
    this.#handedOver.push({ group, entryId, untilMs: Date.now() + HANDED_OVER_MS })
    this.#options.handOver({ event: group.event, group: group.inStream, local, entryId, frame, replyTo, fault, span })
    this.#roomAgain()
  }

  #sweep(): void {
    const nowMs = Date.now()
    const wasBlocked = nowMs - this.#lastSweepMs > BLOCKED_MS
    this.#lastSweepMs = nowMs
    if (wasBlocked) return
    for (const [id, hand] of this.#hands) {
      if (hand.deadlineMs + SWEEP_MS > nowMs) continue
      this.#lay(id)
      this.#handOverHand(hand, `The subscriber did not finish within ${hand.group.timeoutMs} ms`)
    }
    while (this.#handedOver.length > 0 && this.#handedOver[0]!.untilMs < nowMs) {
      const { group, entryId } = this.#handedOver.shift()!
      group.held.delete(entryId)
    }
  }

  #acknowledge({ stream, inStream }: Group, entryId: string): void {
    this.#acks.add(stream, inStream, entryId)
    // Whoever comes behind it with the same key waits for this.
    if (this.#gate.size > 0 || this.#isStopping) this.#acks.flush()
  }

  #acknowledged(stream: string, group: string, ids: readonly string[]): void {
    const held = this.#groupInStream(stream, group)?.held
    if (held !== undefined) for (const id of ids) held.delete(id)
    this.#gate.acknowledged(stream, group, ids)
    this.#roomAgain()
  }

  #groupInStream(stream: string, group: string): Group | undefined {
    const topic = this.#topics.get(eventOf(stream)!)
    return topic?.groups.find(({ inStream }) => inStream === group)
  }

  #roomAgain(): void {
    if (this.#isStopping) return this.#lookWhetherStopped()
    if (this.#hungry.size === 0 || this.#room < READ_BATCH_MAX / 2) return
    const hungry = [...this.#hungry]
    this.#hungry.clear()
    for (const { event } of hungry) {
      this.#options.full(event, false)
      this.wake(event)
    }
  }

  // ── end ───────────────────────────────────────────────────────────────────

  get inHand(): number {
    return this.#hands.size + this.#waitingForKey + this.#acks.open
  }

  /** Reads nothing more. Resolves when all in hand is answered and acknowledged. */
  stop(): Promise<void> {
    this.#isStopping = true
    return new Promise((resolve) => {
      this.#stopWaiters.push(resolve)
      this.#lookWhetherStopped()
    })
  }

  #stoppedReading(topic: Topic): void {
    topic.isReading = false
    this.#lookWhetherStopped()
  }

  #lookWhetherStopped(): void {
    const isReading = [...this.#topics.values()].some((topic) => topic.isReading)
    if (this.inHand > 0 || isReading) return
    for (const resolve of this.#stopWaiters.splice(0)) resolve()
  }

  close(): void {
    clearInterval(this.#sweepTimer)
    this.#gate.close()
    this.#acks.close()
  }
}

/** All of them when all are paused: what is in hand already goes on. */
function unpaused(locals: Group['locals'], paused: ReadonlySet<string>): Group['locals'] {
  const awake = locals.filter(({ plugin }) => !paused.has(plugin))
  return awake.length === 0 ? locals : awake
}
