import { isNoGroup } from './consumers.ts'
import { streamOf } from './keys.ts'
import type { PendingEntries } from './pending-entries.ts'
import type { Entry, StreamCommands } from './stream-commands.ts'
import type { Group, ThreadGroups } from './thread-groups.ts'

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
const HELP_FROM_PENDING = 64
/** Before what has failed is tried again, milliseconds. */
const RETRY_MS = 250

export interface TopicReaderOptions {
  commands: StreamCommands
  groups: ThreadGroups
  pending: PendingEntries
  /** Everything up to this entry has been read by this thread's groups: wake it for the next. */
  idle: (event: string, upTo: string) => void
  /** There is more than this thread reads at a time: another may help. */
  more: (event: string) => void
  log: (level: 'WARNING' | 'ERROR', message: string) => void
  /** There is no room: it wants to be woken when there is. */
  blocked: (topic: TopicReader) => void
  /** This thread reads nothing more. */
  isStopping: () => boolean
  /** Told when it reads no more for that reason. */
  stopped: () => void
}

interface Round {
  /** The last entry of the stream before the groups read; null when nobody asked. */
  upTo: string | null
  batches: { group: Group; entries: Entry[] }[]
  isFull: boolean
}

/** Reads the stream of one event for the groups of one thread, from when it is woken until there is nothing left, or no room. */
export class TopicReader {
  readonly event: string
  readonly #groups: readonly Group[]
  readonly #options: TopicReaderOptions
  #isReading = false
  /** Woken while it was reading. */
  #isWoken = false
  /** Entries that are read at a time: more and more, as long as they are dealt with at once. */
  #batch = READ_BATCH_MIN
  /** Length of the largest payload of the last read. */
  #largestChars = 1
  /** When it last asked for help. */
  #askedMs = 0

  /** @param groups those of this event, as they are at any time */
  constructor(event: string, groups: readonly Group[], options: TopicReaderOptions) {
    this.event = event
    this.#groups = groups
    this.#options = options
  }

  /** Or waits to try again what has failed. */
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
    const { pending, idle, blocked, isStopping } = this.#options
    this.#isReading = true
    this.#isWoken = false
    try {
      this.#batch = READ_BATCH_MIN
      let arrivedInAll = 0
      let lingered = 0
      let next = this.#fetch(true, 0)
      for (;;) {
        const round = await next
        if (round.isFull || pending.load >= HELP_FROM_PENDING) this.#askForHelp()
        const arrived = round.batches.reduce((sum, { entries }) => sum + entries.length, 0)
        const room = pending.room - arrived
        arrivedInAll += arrived
        lingered = arrived > 0 ? 0 : lingered + 1
        // Behind a flow there is soon more: to fall asleep and be woken costs more than to look again.
        const mayLinger = arrivedInAll >= FLOW && lingered <= LINGER_ROUNDS
        // Who keeps up takes more at a time; who has his pending full leaves more to others.
        if (round.isFull && pending.load <= this.#batch) this.#batch = Math.min(READ_BATCH_MAX, this.#batch * 2)
        const isExhausted = !round.isFull && round.upTo !== null && !this.#isWoken && arrived === 0 && !mayLinger
        const goesOn = !isExhausted && !isStopping() && room > 0
        this.#isWoken = false
        // On its way while this batch is handled. While there is plenty, nobody needs to know where the stream ends.
        if (goesOn) next = round.isFull ? this.#fetch(false, arrived) : this.#fetchLater(arrived, mayLinger)
        for (const { group, entries } of round.batches) {
          for (const [entryId, fields] of entries) pending.take(group, entryId, fields)
        }
        if (goesOn) continue
        if (isStopping()) return this.#stop()
        this.#isReading = false
        if (isExhausted) return idle(this.event, round.upTo!)
        return blocked(this)
      }
    } catch (error) {
      this.#failed(error)
    }
  }

  #askForHelp(): void {
    const nowMs = performance.now()
    if (nowMs - this.#askedMs < ASK_AGAIN_MS) return
    this.#askedMs = nowMs
    this.#options.more(this.event)
  }

  /** More may be coming: what comes within a moment is read together. Where the stream ends is asked when it seems to have ended. */
  async #fetchLater(arrived: number, mayLinger: boolean): Promise<Round> {
    if (arrived > 0 || mayLinger) await new Promise((resolve) => setTimeout(resolve, GATHER_MS))
    return this.#fetch(arrived < TRICKLE && !mayLinger, 0)
  }

  /** @param arrived entries that are read and not yet in hand */
  async #fetch(wantsEnd: boolean, arrived: number): Promise<Round> {
    const { commands, groups, pending } = this.#options
    pending.flush()
    const readable = this.#groups.filter((group) => groups.mayRead(group))
    const wanted = Math.max(READ_BATCH_MIN, this.#batch - pending.load - arrived)
    const room = Math.floor((pending.room - arrived) / Math.max(1, readable.length))
    const fitting = Math.floor(READ_MAX_CHARS / (this.#largestChars * Math.max(1, readable.length)))
    const count = Math.max(1, Math.min(wanted, room, fitting))
    const [upTo, ...batches] = await Promise.all([
      // Before the groups read, on the same connection: what comes after this entry they may have missed, what comes before they have not.
      wantsEnd ? commands.lastEntryId(streamOf(this.event)) : null,
      ...readable.map(async (group) => ({
        group,
        entries: await commands.read(group.stream, group.consumerGroup, groups.consumer, count),
      })),
    ])
    this.#largestChars = 1
    for (const { entries } of batches)
      for (const [, fields] of entries)
        this.#largestChars = Math.max(this.#largestChars, fields?.[PAYLOAD]?.length ?? 0)
    return { upTo, batches, isFull: batches.some(({ entries }) => entries.length >= count) }
  }

  #stop(): void {
    this.#isReading = false
    this.#options.stopped()
  }

  /** Whatever the store has given and this thread has not got is read again, once it answers. */
  #failed(error: unknown): void {
    const { isStopping, log } = this.#options
    if (isStopping()) return this.#stop()
    setTimeout(() => void this.#again(), RETRY_MS)
    if (!isNoGroup(error)) return
    log(
      'WARNING',
      `The stream of ${this.event} or a group of it has gone from the key-value store: its groups are made anew, and read from its beginning`,
    )
  }

  /** It counts as reading meanwhile: nothing else may come in between. */
  async #again(): Promise<void> {
    const { commands, isStopping } = this.#options
    try {
      if (isStopping()) return this.#stop()
      // What is not open yet the primary makes.
      const open = this.#groups.filter(({ isOpen }) => isOpen)
      for (const { stream, consumerGroup } of open) await commands.ensureGroup(stream, consumerGroup, '0')
      for (const group of open) await this.#recheck(group)
    } catch {
      setTimeout(() => void this.#again(), RETRY_MS)
      return
    }
    // Meanwhile it may have been told to stop: nobody would wake it any more.
    if (isStopping()) return this.#stop()
    this.#isReading = false
    this.wake()
  }

  /** Takes what the store believes to be in this thread's hand and is not: its answer was lost on the way. */
  async #recheck(group: Group): Promise<void> {
    const { commands, groups, pending } = this.#options
    const { stream, consumerGroup, pendingIds } = group
    for (let after = '0'; ; ) {
      const entries = await commands.readOwn(stream, consumerGroup, groups.consumer, after, READ_BATCH_MIN)
      for (const [entryId, fields] of entries) if (!pendingIds.has(entryId)) pending.take(group, entryId, fields)
      if (entries.length < READ_BATCH_MIN) return
      after = entries.at(-1)![0]
    }
  }
}
