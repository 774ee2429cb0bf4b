// Claims what others have left.

import { setTimeout as sleep } from 'node:timers/promises'
import type { BlackBox } from '../../contracts/registry.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import { decodeEntry, type StreamEvent } from '../../runtime/streams/entry.ts'
import { eventOf } from '../../runtime/streams/keys.ts'
import type { KeyGate } from '../../runtime/streams/pending-entries.ts'
import type { Entry } from '../../runtime/streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import { groupKey } from './reading-thread.ts'

/** The hub takes so many events of one group, or about so many characters of payload: the rest stays in the stream. */
const FULL_AT = 1000
const FULL_AT_CHARS = 32 << 20
/** Of a group that handles few at a time so many wait at the hub: other processes may have places for the rest. */
const FULL_AT_WAITING = 64

interface GroupClaims {
  readonly stream: string
  readonly group: string
  /** Length of the payload by entry id. */
  readonly entries: Map<string, number>
  /** Ids of those that no thread has had. */
  readonly waiting: Set<string>
  chars: number
  isFull: boolean
}

/** The entries that are pending at the hub of this process: it finishes them or gives them back. */
export class ClaimedEntries {
  readonly #streamGroups = new Map<string, GroupClaims>()
  readonly #onFull: (stream: string, group: string, isFull: boolean) => void

  /** @param onFull told when the hub has as many entries of a group as it takes, and when half of them are done */
  constructor(onFull: (stream: string, group: string, isFull: boolean) => void) {
    this.#onFull = onFull
  }

  /** @param chars length of its payload @param isWaiting true when no thread has had it: see `begun` */
  add(stream: string, group: string, entryId: string, chars: number, isWaiting = false): void {
    const key = groupKey(stream, group)
    let claims = this.#streamGroups.get(key)
    if (claims === undefined) {
      claims = { stream, group, entries: new Map(), waiting: new Set(), chars: 0, isFull: false }
      this.#streamGroups.set(key, claims)
    }
    claims.chars += chars - (claims.entries.get(entryId) ?? 0)
    claims.entries.set(entryId, chars)
    if (isWaiting) claims.waiting.add(entryId)
    this.#updateFull(claims)
  }

  /** A thread has the entry. */
  begun(stream: string, group: string, entryId: string): void {
    const claims = this.#streamGroups.get(groupKey(stream, group))
    if (claims?.waiting.delete(entryId)) this.#updateFull(claims)
  }

  delete(stream: string, group: string, entryId: string): void {
    const key = groupKey(stream, group)
    const claims = this.#streamGroups.get(key)
    const chars = claims?.entries.get(entryId)
    if (claims === undefined || chars === undefined) return
    claims.entries.delete(entryId)
    claims.waiting.delete(entryId)
    claims.chars -= chars
    if (claims.entries.size === 0) this.#streamGroups.delete(key)
    this.#updateFull(claims)
  }

  #updateFull(claims: GroupClaims): void {
    const { stream, group, entries, waiting, chars, isFull } = claims
    const isMuch = isFull
      ? entries.size > FULL_AT / 2 || chars > FULL_AT_CHARS / 2 || waiting.size > FULL_AT_WAITING / 2
      : entries.size >= FULL_AT || chars >= FULL_AT_CHARS || waiting.size >= FULL_AT_WAITING
    if (isMuch === isFull) return
    claims.isFull = isMuch
    this.#onFull(stream, group, isMuch)
  }

  has(stream: string, group: string, entryId: string): boolean {
    return this.#streamGroups.get(groupKey(stream, group))?.entries.has(entryId) === true
  }

  /** True when the hub has as many entries of the group as it takes. */
  isFull(stream: string, group: string): boolean {
    return this.#streamGroups.get(groupKey(stream, group))?.isFull === true
  }

  all(): { stream: string; group: string; ids: string[] }[] {
    return [...this.#streamGroups.values()].map(({ stream, group, entries }) => ({
      stream,
      group,
      ids: [...entries.keys()],
    }))
  }
}

/** Entries that are claimed at a time. */
const CLAIM_BATCH = 200
/** An entry that was delivered so often and never acknowledged may have ended those processes: such entries are tried one by one. */
const SUSPECT_AFTER_TIMES = 3
/** An entry that was delivered so often and never acknowledged is a dead letter. */
export const POISON_AFTER_TIMES = 6
/** The next suspect waits no longer than this for the one before it and its retries, milliseconds. */
const ALONE_MAX_MS = 60_000
/** Before the store is asked again for a suspect, milliseconds. */
const RETRY_MS = 500

/** What is known of an entry that is claimed. */
export interface ClaimedShare {
  group: string
  /** Threads and processes that died of it. */
  deaths: number
  /** The report of the last of these deaths. */
  blackBox: BlackBox | null
}

interface ClaimerOptions {
  redis: RedisClient
  /** Claimed entries are pending at this consumer. */
  hubConsumer: string
  claimed: ClaimedEntries
  gate: KeyGate
  /** True for a thread of this process that lives: it handles its pending entries. */
  isAlive: (consumer: string) => boolean
  /** @param onEnded told when the entry is done, or given back. @returns false when nobody here subscribes as that group */
  deliver: (stream: string, entry: StreamEvent, share: ClaimedShare, onEnded: () => void) => boolean
  /** Told of an entry that is no event. */
  onMalformed: (stream: string, group: string, entryId: string, why: string) => void
  /** Gives an entry back, since nobody here takes it: other replicas may. */
  release: (stream: string, group: string, entryId: string) => void
}

type PendingRow = [id: string, consumer: string, idleMs: number, times: number]

/** An entry that is claimed, and whose delivery is not counted yet. */
interface Suspect {
  readonly stream: string
  readonly group: string
  readonly entry: StreamEvent
  readonly times: number
  readonly blackBox: BlackBox | null
}

/** Claims the entries of threads that have died and of replicas that do not answer, and gives them to the hub. */
export class Claimer {
  readonly #options: ClaimerOptions
  readonly #suspects = new Fifo<Suspect>()
  #isTrying = false
  #isClosed = false

  constructor(options: ClaimerOptions) {
    this.#options = options
  }

  /** Suspects that wait for their turn stay pending at the hub's consumer. */
  close(): void {
    this.#isClosed = true
  }

  /** Claims all pending entries of a consumer of this process. @param blackBox of the thread, when it has died */
  async claimFromConsumer(stream: string, group: string, consumer: string, blackBox: BlackBox | null): Promise<number> {
    let taken = 0
    // From entry to entry: when the consumer is the hub's own, claimed entries stay pending there and would be found again.
    for (let from = '-'; ; ) {
      const rows = await this.#pending(stream, group, [from, '+', CLAIM_BATCH, consumer])
      if (rows.length === 0) return taken
      taken += await this.#claim(stream, group, rows, 0, blackBox)
      if (rows.length < CLAIM_BATCH) return taken
      from = `(${rows.at(-1)![0]}`
    }
  }

  /** Claims entries that have been idle for so long, at most one batch. */
  async claimIdle(stream: string, group: string, idleMs: number): Promise<number> {
    const rows = await this.#pending(stream, group, ['IDLE', idleMs, '-', '+', CLAIM_BATCH])
    const { hubConsumer, claimed, isAlive } = this.#options
    // Entries of the hub's consumer that the hub does not know were given back, or were lost on the way here.
    const theirs = rows.filter(([id, consumer]) =>
      consumer === hubConsumer ? !claimed.has(stream, group, id) : !isAlive(consumer),
    )
    return theirs.length === 0 ? 0 : this.#claim(stream, group, theirs, idleMs, null)
  }

  async #pending(stream: string, group: string, args: (string | number)[]): Promise<PendingRow[]> {
    return this.#options.redis.command<PendingRow[]>('xpending', [stream, group, ...args])
  }

  async #claim(
    stream: string,
    group: string,
    rows: readonly PendingRow[],
    minIdleMs: number,
    blackBox: BlackBox | null,
  ): Promise<number> {
    const suspects = rows.filter(([, , , times]) => times >= SUSPECT_AFTER_TIMES)
    const others = rows.filter(([, , , times]) => times < SUSPECT_AFTER_TIMES)
    let count = await this.#claimSuspects(stream, group, suspects, minIdleMs, blackBox)
    for (const entry of await this.#claimCounted(stream, group, others, minIdleMs)) {
      count++
      const [id, fields] = entry
      this.#inKeyOrder(stream, group, id, fields, (event) =>
        this.#deliver(stream, group, event, { deaths: 0, blackBox }),
      )
    }
    return count
  }

  /** Each counts as delivered once more. */
  async #claimCounted(
    stream: string,
    group: string,
    rows: readonly PendingRow[],
    minIdleMs: number,
  ): Promise<ClaimedEntry[]> {
    if (rows.length === 0) return []
    const { redis, hubConsumer, claimed } = this.#options
    const ids = rows.map(([id]) => id)
    const entries = await redis.command<(Entry | null)[]>('xclaim', [stream, group, hubConsumer, minIdleMs, ...ids])
    // Another replica was faster, or the entry was cut from the stream and the server has dropped it.
    const taken = entries.filter((entry): entry is ClaimedEntry => entry !== null && entry[1] !== null)
    for (const [id, fields] of taken) claimed.add(stream, group, id, charsOf(fields))
    return taken
  }

  /** Claims entries for the hub without counting a delivery: of the entries that a process had when it died, most are not the cause. */
  async #claimSuspects(
    stream: string,
    group: string,
    rows: readonly PendingRow[],
    minIdleMs: number,
    blackBox: BlackBox | null,
  ): Promise<number> {
    if (rows.length === 0) return 0
    const { redis, hubConsumer, claimed } = this.#options
    const times = new Map(rows.map(([id, , , count]) => [id, count]))
    const args = [stream, group, hubConsumer, minIdleMs, ...times.keys(), 'JUSTID']
    const ids = await redis.command<string[]>('xclaim', args)
    const found = await Promise.all(ids.map((id) => redis.command<ClaimedEntry[]>('xrange', [stream, id, id])))
    for (const [entry] of found) {
      if (entry === undefined) continue
      const [id, fields] = entry
      claimed.add(stream, group, id, charsOf(fields))
      this.#inKeyOrder(stream, group, id, fields, (event) => {
        this.#suspects.push({ stream, group, entry: event, times: times.get(id)!, blackBox })
        void this.#tryAlone()
      })
    }
    return ids.length
  }

  async #tryAlone(): Promise<void> {
    if (this.#isTrying) return
    this.#isTrying = true
    for (let suspect = this.#suspects.shift(); suspect !== undefined; suspect = this.#suspects.shift()) {
      const { stream, group, entry, times, blackBox } = suspect
      if (this.#isClosed) break
      try {
        const taken = await this.#claimCounted(stream, group, [[entry.entryId, '', 0, times]], 0)
        if (taken.length === 0) {
          this.#options.claimed.delete(stream, group, entry.entryId)
          continue
        }
      } catch {
        this.#suspects.unshift(suspect)
        await sleep(RETRY_MS)
        continue
      }
      const deaths = times >= POISON_AFTER_TIMES ? Number.POSITIVE_INFINITY : 1
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ALONE_MAX_MS)
        this.#deliver(stream, group, entry, { deaths, blackBox: blackBox ?? processDeath(times) }, () => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
    this.#isTrying = false
  }

  /** Runs `run` when the event before it with the same key is finished. */
  #inKeyOrder(
    stream: string,
    group: string,
    entryId: string,
    fields: string[],
    run: (entry: StreamEvent) => void,
  ): void {
    const { onMalformed, gate } = this.#options
    const entry = decodeEntry(eventOf(stream) ?? stream, entryId, fields)
    if (typeof entry === 'string') onMalformed(stream, group, entryId, entry)
    else if (entry.after === null) run(entry)
    else gate.wait(stream, group, entry.after, () => run(entry))
  }

  /** @param death `deaths` are those of processes; a black box tells of the death of a thread */
  #deliver(
    stream: string,
    group: string,
    entry: StreamEvent,
    { deaths, blackBox }: Omit<ClaimedShare, 'group'>,
    onEnded: () => void = () => {},
  ): void {
    const { deliver, release } = this.#options
    const share = { group, deaths: blackBox === null ? deaths : Math.max(1, deaths), blackBox }
    if (deliver(stream, entry, share, onEnded)) return
    release(stream, group, entry.entryId)
    onEnded()
  }
}

type ClaimedEntry = [id: string, fields: string[]]

const charsOf = (fields: readonly string[]): number => fields.reduce((sum, field) => sum + field.length, 0)

/** The death of a whole process leaves no black box: only the number of deliveries is known. */
function processDeath(times: number): BlackBox {
  return {
    at: new Date().toISOString(),
    lane: -1,
    reason: 'process',
    message: `The event was given out ${times} times, and each time its process ended or stood still before it was done`,
    guilty: null,
    stack: [],
    stood_still_ms: 0,
    lived_ms: 0,
    cpu_ms: null,
    cpu_ms_while_still: null,
    heap_bytes: 0,
    external_bytes: 0,
    in_flight: [],
    in_flight_count: 0,
    steps: [],
  }
}
