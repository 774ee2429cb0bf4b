import { setTimeout as sleep } from 'node:timers/promises'
import { isNoGroup } from './consumers.ts'
import { streamOf } from './keys.ts'
import type { PendingEntries } from './pending-entries.ts'
import { retryWhile } from './publisher.ts'
import type { Entry, StreamCommands } from './stream-commands.ts'
import type { Group, ThreadGroups } from './thread-groups.ts'

/** About how many characters one read takes, judged by the largest payload of the one before. */
const READ_MAX_CHARS = 8 << 20
/** The place of the payload among the fields of an entry that this service has written. */
const PAYLOAD_FIELD = 3
/** Entries of one group that are read at a time: at most, and at first. */
const READ_BATCH_MAX = 256
const READ_BATCH_MIN = 16
/** Entries that a thread has read and not answered, at most, those included that it reads meanwhile: the rest is for others. */
const HELD_MAX = 2 * READ_BATCH_MAX
/** Between two calls for help, milliseconds: at first, and at most. After each call twice as long, because whoever can help reads by then. */
const HELP_EVERY_MS = 5
const HELP_EVERY_MAX_MS = 80
/** A thread with so many pending entries that finds more wants another thread to read along. */
const HELP_FROM_PENDING = 64
/** After a read that found little, the next one waits so long, milliseconds: a read costs the same whatever it finds. */
const GATHER_MS = 2
/** So many entries since the wake-up are a flow; after a flow so many empty reads are made before the reader sleeps. */
const FLOW_MIN = 64
const EMPTY_READS_MAX = 4
/** A read that finds fewer entries may have found the last one. */
const FEW_ENTRIES = 8
/** Before what has failed is tried again, milliseconds. */
const RETRY_MS = 250

export interface TopicReaderOptions {
  commands: StreamCommands
  groups: ThreadGroups
  pending: PendingEntries
  /** This thread's groups have read everything up to this entry: wake the thread for the next. */
  idle: (event: string, upTo: string) => void
  /** There is more than this thread reads at a time: another may help. */
  more: (event: string) => void
  log: (level: 'WARNING' | 'ERROR', message: string) => void
  /** There is no room: the reader is to be woken when there is. */
  blocked: (topic: TopicReader) => void
  /** This thread reads nothing more. */
  isStopping: () => boolean
  /** Told when the reader has ended for that reason. */
  stopped: () => void
}

/** What one read of all groups has brought. */
interface Round {
  /** The last entry of the stream before the groups read; null when the stream was not asked for it. */
  upTo: string | null
  batches: { group: Group; entries: Entry[] }[]
  /** Entries of all groups together. */
  arrived: number
  /** A group got as many as it asked for. */
  isFull: boolean
}

/** How much has come since a reader was woken. */
class Flow {
  #arrived = 0
  #emptyReads = 0

  add(arrived: number): void {
    this.#arrived += arrived
    this.#emptyReads = arrived > 0 ? 0 : this.#emptyReads + 1
  }

  /** After a flow there is soon more: to look again costs less than to sleep and be woken. */
  get isExpected(): boolean {
    return this.#arrived >= FLOW_MIN && this.#emptyReads <= EMPTY_READS_MAX
  }
}

/** Reads the stream of one event for the groups of one thread, from when it is woken until there is nothing left, or no room. */
export class TopicReader {
  readonly event: string
  readonly #groups: readonly Group[]
  readonly #options: TopicReaderOptions
  #isReading = false
  /** Woken while it was reading. */
  #isWoken = false
  /** Entries that are read at a time: more and more, as long as they are handled at once. */
  #batch = READ_BATCH_MIN
  /** Length of the largest payload of the last read. */
  #largestChars = 1
  /** When it last asked for help, and how long it waits until it asks again. */
  #askedMs = 0
  #helpEveryMs = HELP_EVERY_MS

  /** @param groups those of this event, as they are at any time */
  constructor(event: string, groups: readonly Group[], options: TopicReaderOptions) {
    this.event = event
    this.#groups = groups
    this.#options = options
  }

  /** Also true while it waits to try again what has failed. */
  get isReading(): boolean {
    return this.#isReading
  }

  /** There is something in the stream. */
  wake(): void {
    const { pending, blocked } = this.#options
    if (this.#isReading) this.#isWoken = true
    else if (pending.room <= 0) blocked(this)
    else void this.#read()
  }

  async #read(): Promise<void> {
    this.#isReading = true
    this.#isWoken = false
    this.#batch = READ_BATCH_MIN
    this.#helpEveryMs = HELP_EVERY_MS
    const flow = new Flow()
    try {
      let round = await this.#fetch(true, 0)
      for (;;) {
        flow.add(round.arrived)
        this.#adapt(round)
        const isExhausted = this.#isExhausted(round, flow)
        this.#isWoken = false
        // The next entries are on their way while these are handled.
        const next = isExhausted || !this.#mayGoOn(round) ? null : this.#fetchNext(round, flow)
        this.#take(round)
        if (next === null) return this.#end(isExhausted ? round.upTo : null)
        round = await next
      }
    } catch (error) {
      this.#failed(error)
    }
  }

  /** A thread that keeps up takes more at a time; one with many pending entries leaves more to others. */
  #adapt({ isFull }: Round): void {
    const { load } = this.#options.pending
    if (isFull || load >= HELP_FROM_PENDING) this.#askForHelp()
    if (isFull && load <= this.#batch) this.#batch = Math.min(READ_BATCH_MAX, this.#batch * 2)
  }

  #askForHelp(): void {
    const nowMs = performance.now()
    if (nowMs - this.#askedMs < this.#helpEveryMs) return
    this.#askedMs = nowMs
    this.#helpEveryMs = Math.min(HELP_EVERY_MAX_MS, this.#helpEveryMs * 2)
    this.#options.more(this.event)
  }

  /** The stream had nothing left when this round was read, and nothing has come since. */
  #isExhausted({ isFull, upTo, arrived }: Round, flow: Flow): boolean {
    return !isFull && upTo !== null && !this.#isWoken && arrived === 0 && !flow.isExpected
  }

  /** @param round not yet among the pending entries */
  #mayGoOn({ arrived }: Round): boolean {
    const { pending, isStopping } = this.#options
    return !isStopping() && pending.room - arrived > 0
  }

  #take({ batches }: Round): void {
    const { pending } = this.#options
    for (const { group, entries } of batches) {
      for (const [entryId, fields] of entries) pending.take(group, entryId, fields)
    }
  }

  /** @param upTo the last entry when the stream is exhausted; null when there is no room */
  #end(upTo: string | null): void {
    const { idle, blocked, isStopping } = this.#options
    if (isStopping()) return this.#stop()
    this.#isReading = false
    if (upTo === null) blocked(this)
    else idle(this.event, upTo)
  }

  #stop(): void {
    this.#isReading = false
    this.#options.stopped()
  }

  // ── one read ──────────────────────────────────────────────────────────────

  /** While there is plenty, nobody needs to know where the stream ends: it is asked when few entries have come. */
  async #fetchNext({ isFull, arrived }: Round, flow: Flow): Promise<Round> {
    if (isFull) return this.#fetch(false, arrived)
    const { isExpected } = flow
    // What comes within a moment is read together.
    if (arrived > 0 || isExpected) await sleep(GATHER_MS)
    return this.#fetch(arrived < FEW_ENTRIES && !isExpected, 0)
  }

  /** @param arrived entries that are read and not yet pending */
  async #fetch(wantsEnd: boolean, arrived: number): Promise<Round> {
    const { commands, groups, pending } = this.#options
    pending.flush()
    const readable = this.#groups.filter((group) => groups.mayRead(group))
    const most = this.#countFor(readable.length, arrived)
    const [upTo, ...batches] = await Promise.all([
      // Before the groups read, on the same connection: they may have missed what comes after this entry, and nothing before it.
      wantsEnd ? commands.lastEntryId(streamOf(this.event)) : null,
      ...readable.map(async (group) => {
        // The hub has no use for many of them, and other processes may.
        const count = group.isBounded ? Math.min(most, READ_BATCH_MIN) : most
        const entries = await commands.read(group.stream, group.consumerGroup, groups.consumer, count)
        return { group, entries, isFull: entries.length >= count }
      }),
    ])
    this.#largestChars = largestPayload(batches.map(({ entries }) => entries))
    return {
      upTo,
      batches,
      arrived: batches.reduce((sum, { entries }) => sum + entries.length, 0),
      isFull: batches.some(({ isFull }) => isFull),
    }
  }

  /** How many entries of each group the next read takes. */
  #countFor(groups: number, arrived: number): number {
    const { load, room } = this.#options.pending
    const share = Math.max(1, groups)
    const wanted = Math.max(READ_BATCH_MIN, Math.min(this.#batch, HELD_MAX - load - arrived))
    const forRoom = Math.floor((room - arrived) / share)
    const forMemory = Math.floor(READ_MAX_CHARS / (this.#largestChars * share))
    return Math.max(1, Math.min(wanted, forRoom, forMemory))
  }

  // ── after a fault ─────────────────────────────────────────────────────────

  #failed(error: unknown): void {
    const { isStopping, log } = this.#options
    if (isStopping()) return this.#stop()
    void this.#recover()
    if (!isNoGroup(error)) return
    log(
      'WARNING',
      `The stream of ${this.event} or a group of it has gone from the key-value store: its groups are made anew, and read from its beginning`,
    )
  }

  /** It counts as reading meanwhile: nothing else may come in between. */
  async #recover(): Promise<void> {
    const { isStopping } = this.#options
    await sleep(RETRY_MS)
    await retryWhile(
      () => !isStopping(),
      () => this.#restore(),
      { pauseMs: RETRY_MS },
    )
    // Nobody would wake it any more.
    if (isStopping()) return this.#stop()
    this.#isReading = false
    this.wake()
  }

  /** The primary creates the groups that are not open yet. */
  async #restore(): Promise<void> {
    const open = this.#groups.filter(({ isOpen }) => isOpen)
    for (const { stream, consumerGroup } of open) await this.#options.commands.ensureGroup(stream, consumerGroup, '0')
    for (const group of open) await this.#readLost(group)
  }

  /** Takes entries that the store has given to this thread and that it never got: the answer was lost on the way. */
  async #readLost(group: Group): Promise<void> {
    const { commands, groups, pending } = this.#options
    const { stream, consumerGroup } = group
    const known = pending.idsOf(group)
    for (let after = '0'; ; ) {
      const entries = await commands.readOwn(stream, consumerGroup, groups.consumer, after, READ_BATCH_MIN)
      for (const [entryId, fields] of entries) if (!known.has(entryId)) pending.take(group, entryId, fields)
      if (entries.length < READ_BATCH_MIN) return
      after = entries.at(-1)![0]
    }
  }
}

/** Characters of the largest payload, at least 1. */
function largestPayload(batches: readonly Entry[][]): number {
  let largest = 1
  for (const entries of batches) {
    for (const [, fields] of entries) largest = Math.max(largest, fields?.[PAYLOAD_FIELD]?.length ?? 0)
  }
  return largest
}
