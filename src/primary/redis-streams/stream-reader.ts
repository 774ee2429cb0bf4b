// Reads the groups of this process, each while it has entries and room.
import { setTimeout as sleep } from 'node:timers/promises'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { broadcastGroupOf, groupOf, streamOf } from '../../runtime/redis-streams/keys.ts'
import { type Entry, ensureGroup, isNoGroup, readGroup, touch } from '../../runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { Consumer } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import { StreamGroup, type StreamProcess } from './stream-group.ts'

/** Pause after a read that was not full, milliseconds: a read costs the same whatever it finds. */
const GATHER_MS = 2
/** Pause before a failed read is repeated, milliseconds. */
const RETRY_MS = 250
/** Interval of the checks for room, milliseconds. */
const LOOK_MS = 100
/** Longest time without a read, milliseconds: others may add entries without a message, or delete the group. */
const UNREAD_MAX_MS = 1000
/** Longest time without a sign of life, milliseconds: after a jump of the server's clock the others soon need one. */
const TOUCH_MAX_MS = 2000
/** A full group is read again once it has room for this many entries, or for fewer at the next check. */
const ROOM_MIN = 16
/** Maximum number of groups in a log line. */
const SHOWN_MAX = 20
/** Index of the payload among the fields of an entry written by this service. */
const PAYLOAD_FIELD = 3

interface StreamReaderOptions extends StreamProcess {
  /** EVENT_BUS_CLAIM_IDLE_MS. */
  claimIdleMs: number
  hub: Hub
  /** Its channels tell of new entries. */
  listening: RedisClient
  /** Sends waiting acknowledgements together with another command. */
  flush: () => void
  take: (group: StreamGroup, entry: Entry) => void
  /** Claims entries that this process, or a former one of its name, has and does not know of. */
  claimOwn: (group: StreamGroup) => Promise<void>
}

interface Batch {
  readonly count: number
  readonly entries: readonly Entry[]
}

export class StreamReader {
  readonly #options: StreamReaderOptions
  /** By stream and name. A group stays when its subscribers leave: they may return while it has entries in hand. */
  readonly #groups = new Map<string, StreamGroup>()
  /** Groups that were missing from the store and are not logged yet. */
  #missing: string[] = []
  /** ready ──► following ◄─► changed; each ──► stopped */
  #status: 'ready' | 'following' | 'changed' | 'stopped' = 'ready'
  #timer: NodeJS.Timeout | undefined

  constructor(options: StreamReaderOptions) {
    this.#options = options
  }

  /** Reads exactly the groups with subscribers in the hub, from now on. */
  start(): void {
    this.#options.hub.onTopology = () => this.#topologyChanged()
    this.#follow()
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
  }

  /** Starts no more reads. The process still shows that it lives: it has entries in hand. */
  stop(): void {
    this.#status = 'stopped'
    this.#tellMissing()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  get groups(): StreamGroup[] {
    return [...this.#groups.values()]
  }

  /** True when the store has all groups. */
  get isOpen(): boolean {
    return this.#status === 'following' && this.groups.every(({ state }) => state !== 'new')
  }

  /** The store's refusal to make a group, while it answers. */
  get refusal(): string | null {
    return this.groups.find(({ state, refusal }) => state === 'new' && refusal !== null)?.refusal ?? null
  }

  // ── groups ────────────────────────────────────────────────────────────────

  /** Handles all subscription changes of one turn of the loop together. */
  #topologyChanged(): void {
    if (this.#status !== 'following') return
    this.#status = 'changed'
    setImmediate(() => this.#follow())
  }

  #follow(): void {
    if (this.#status === 'stopped') return
    this.#status = 'following'
    const left = new Set(this.#groups.values())
    for (const consumer of this.#options.hub.workloads()) {
      const group = this.#groupOf(consumer)
      left.delete(group)
      group.consumer = consumer
      if (group.state !== 'closed') continue
      group.state = 'new'
      this.wake(group)
    }
    for (const group of left) if (group.state !== 'closed') this.#close(group)
  }

  #groupOf({ event, group: subscriber, broadcast: isBroadcast }: Consumer): StreamGroup {
    const name = isBroadcast ? broadcastGroupOf(subscriber, this.#options.consumer) : groupOf(subscriber)
    const stream = streamOf(event)
    const key = `${stream} ${name}`
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = new StreamGroup({ event, stream, name, subscriber, isBroadcast })
      this.#groups.set(key, group)
    }
    return group
  }

  #close(group: StreamGroup): void {
    group.consumer = null
    group.state = 'closed'
    group.unsubscribe?.()
    group.unsubscribe = null
    // If this fails, the group ends with the replica.
    if (group.isBroadcast) this.#destroy(group).catch(() => {})
  }

  #destroy({ stream, name }: StreamGroup): Promise<unknown> {
    return this.#options.redis.command('xgroup', ['DESTROY', stream, name])
  }

  /** Makes the group in the store, unless it is there. */
  async #make(group: StreamGroup): Promise<void> {
    const { redis, listening, claimOwn } = this.#options
    const { stream, name, state } = group
    group.unsubscribe ??= await listening.subscribe(stream, () => this.wake(group))
    // Entries for threads of a former process have no recipient.
    if (state === 'new' && group.isBroadcast) await this.#destroy(group).catch(() => {})
    const isMissing = await ensureGroup(redis, stream, name, state === 'new' ? '$' : '0')
    if (isMissing && state === 'lost') this.#missing.push(`${stream} ${name}`)
    if (this.#status === 'stopped') return this.#tellMissing()
    await claimOwn(group)
    if (group.state === state) group.state = 'open'
    group.refusal = null
  }

  /** Answers for this group may be missing, or the group itself. */
  lose(group: StreamGroup): void {
    if (group.state === 'open') group.state = 'lost'
    group.touchedMs = 0
    this.wake(group)
  }

  /** The connection was lost, and is back. */
  loseAll(): void {
    for (const group of this.#groups.values()) this.lose(group)
  }

  // ── reads ─────────────────────────────────────────────────────────────────

  /** There may be entries, or room. */
  wake(group: StreamGroup): void {
    if (group.reading === 'no') void this.#read(group)
    else group.reading = 'again'
  }

  /** The group has more room. */
  freed(group: StreamGroup): void {
    if (group.isFull && group.room >= ROOM_MIN) this.wake(group)
  }

  #look(): void {
    const nowMs = steadyMs()
    for (const group of this.#groups.values()) {
      // No event reports that a plugin is resumed, or a lane starts or runs again.
      if (group.room > 0 && (group.isFull || nowMs - group.readMs >= UNREAD_MAX_MS)) this.wake(group)
      // Three times within the idle time: one may fail.
      if (nowMs - group.touchedMs >= Math.min(TOUCH_MAX_MS, this.#options.claimIdleMs / 3)) this.#touch(group, nowMs)
    }
    this.#tellMissing()
  }

  /** A read that finds nothing is no sign of life before Redis 7.2, a group without room is not read, and one in retries may be closed. */
  #touch(group: StreamGroup, nowMs: number): void {
    if (!this.#options.isOurs() || (group.state === 'closed' && group.size === 0)) return
    group.touchedMs = nowMs
    const { redis, consumer } = this.#options
    touch(redis, group.stream, group.name, consumer).catch((fault: unknown) => {
      if (isNoGroup(fault)) this.lose(group)
    })
  }

  #isWanted({ state }: StreamGroup): boolean {
    return state !== 'closed' && this.#status !== 'stopped' && this.#options.mayBegin()
  }

  async #read(group: StreamGroup): Promise<void> {
    group.reading = 'again'
    while (group.reading === 'again' && this.#isWanted(group)) {
      group.reading = 'yes'
      try {
        if (group.state !== 'open') await this.#make(group)
        await this.#readAll(group)
      } catch (fault) {
        // A store that does not answer has not refused.
        group.refusal = isUnanswered(fault) ? null : `${group.stream}: ${messageOf(fault)}`
        await sleep(RETRY_MS)
        this.lose(group)
      }
    }
    group.reading = 'no'
  }

  /** Reads until there are no entries, or no room. */
  async #readAll(group: StreamGroup): Promise<void> {
    group.awake()
    let batch = await this.#fetch(group)
    while (batch !== null && batch.entries.length > 0 && this.#status !== 'stopped') {
      // The next entries are on their way while these are handled.
      const next = batch.entries.length >= batch.count ? this.#fetch(group) : null
      // Awaited below: until then its failure must not count as unhandled.
      next?.catch(() => {})
      this.#take(group, batch)
      if (next === null) await sleep(GATHER_MS)
      batch = await (next ?? this.#fetch(group))
    }
    if (batch !== null) this.#take(group, batch)
  }

  /** @returns null if the group has no room */
  async #fetch(group: StreamGroup): Promise<Batch | null> {
    const { redis, consumer, flush } = this.#options
    flush()
    const count = group.wanted
    group.isFull = count <= 0
    if (group.isFull) return null
    group.arriving += count
    group.readMs = steadyMs()
    // Messages that have come tell of entries this read finds.
    group.reading = 'yes'
    try {
      return { count, entries: await readGroup(redis, group.stream, group.name, consumer, count) }
    } catch (fault) {
      group.arriving -= count
      throw fault
    }
  }

  #take(group: StreamGroup, { count, entries }: Batch): void {
    group.arriving -= count
    if (entries.length >= count) group.readFully()
    group.largestChars = 1
    for (const entry of entries) {
      group.largestChars = Math.max(group.largestChars, entry[1]?.[PAYLOAD_FIELD]?.length ?? 0)
      this.#options.take(group, entry)
    }
  }

  #tellMissing(): void {
    if (this.#missing.length === 0) return
    this.#options.log(
      'WARNING',
      `${this.#missing.length} groups were missing from the key-value store and were created again: was it emptied, or did it start without its data?`,
      { groups: this.#missing.slice(0, SHOWN_MAX) },
    )
    this.#missing = []
  }
}

/** True when the store does not answer. */
export const isUnanswered = (error: unknown): boolean => error instanceof HeddleError && error.code === 'KV_UNAVAILABLE'
