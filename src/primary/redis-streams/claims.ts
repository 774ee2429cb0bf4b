// Claims entries of other consumers, and renews the entries of this process.
import { setTimeout as sleep } from 'node:timers/promises'
import type { BlackBox } from '../../contracts/registry.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { replicaKey, replicaOfConsumer } from '../../runtime/redis-streams/keys.ts'
import { type Entry, isNoGroup, listConsumers, SCRIPTS } from '../../runtime/redis-streams/stream-commands.ts'
import { identityIn, isKnownDead } from '../event-store/process-identity.ts'
import type { StreamSettlements } from './settlements.ts'
import type { ClaimedShare, StreamDeliveries } from './stream-deliveries.ts'
import { FIRST_ATTEMPT, type StreamGroup, type StreamProcess, type TakenEntry } from './stream-group.ts'
import { markGroupsSeen } from './trimmer.ts'

/** Number of entries of one claim. */
const CLAIM_BATCH = 200
/** An entry delivered this often and never acknowledged may have ended those processes: it is tried alone. */
const SUSPECT_AFTER_TIMES = 3
/** An entry delivered this often and never acknowledged becomes a dead letter. */
export const POISON_AFTER_TIMES = 6
/** Longest wait of a suspect for the one before it and its retries, milliseconds. */
const ALONE_MAX_MS = 60_000
/** Pause before the store is asked again for a suspect, milliseconds. */
const RETRY_MS = 500
/** Longest interval between two claims, milliseconds. */
const CLAIM_EVERY_MAX_MS = 5000
/** Time for other processes to reconnect after an outage of the store and renew their entries, milliseconds. */
const BACK_MS = 2500
/** Interval at which this process marks its groups as having a subscriber, milliseconds. */
const SEEN_EVERY_MS = 60_000

interface ClaimsOptions extends StreamProcess {
  /** EVENT_BUS_CLAIM_IDLE_MS. */
  claimIdleMs: number
  /** The groups this process reads. */
  groups: () => readonly StreamGroup[]
  /** Called for a group that is missing. */
  lose: (group: StreamGroup) => void
  deliveries: StreamDeliveries
  settlements: StreamSettlements
}

type PendingRow = [id: string, consumer: string, idleMs: number, times: number]

/** A claimed entry whose delivery is not counted yet. */
interface Suspect {
  readonly entry: TakenEntry
  readonly times: number
  readonly deliver: (share: ClaimedShare) => void
}

export class StreamClaims {
  readonly #options: ClaimsOptions
  readonly #suspects = new Fifo<Suspect>()
  readonly #timers: NodeJS.Timeout[] = []
  readonly #everyMs: number
  /** Before this time no entry counts as abandoned; steady clock. */
  #notBeforeMs = 0
  /** Time of the last claim, by the steady clock, and the lead of the store's clock over it at that time. */
  #lookedMs = Number.POSITIVE_INFINITY
  #aheadMs = Number.POSITIVE_INFINITY
  #isTrying = false
  #isClosed = false

  constructor(options: ClaimsOptions) {
    this.#options = options
    this.#everyMs = Math.min(CLAIM_EVERY_MAX_MS, Math.max(25, options.claimIdleMs / 4))
  }

  start(): void {
    // Three times within the idle time: one may fail.
    this.#every(Math.max(10, this.#options.claimIdleMs / 3), () => this.#renew())
    this.#every(this.#everyMs, () => this.#claim())
    this.#every(SEEN_EVERY_MS, () => this.#markSeen())
  }

  /** Waiting suspects are not started: they stay pending at this process's consumer. */
  close(): void {
    this.#isClosed = true
    for (const timer of this.#timers) clearInterval(timer)
  }

  #every(everyMs: number, work: () => Promise<void>): void {
    let isRunning = false
    const timer = setInterval(() => {
      if (isRunning || !this.#options.redis.isReady) return
      isRunning = true
      work()
        .catch(() => {
          // The connection logs its loss, and the work is repeated.
        })
        .finally(() => {
          isRunning = false
        })
    }, everyMs)
    this.#timers.push(timer.unref())
  }

  #shared(): StreamGroup[] {
    return this.#options.groups().filter(({ state, isBroadcast }) => state === 'open' && !isBroadcast)
  }

  /** After an outage of the store, or the loss of its data, every entry looks idle: waits BACK_MS before claiming. */
  async reconnected(): Promise<void> {
    this.#notBeforeMs = steadyMs() + BACK_MS
    await this.#renew(true)
  }

  /** Treats a pause of this process or the machine, or a jump of the store's clock, like an outage. */
  async #findPause(): Promise<void> {
    const time = await this.#options.redis.command<[seconds: string, micros: string]>('time', []).catch(() => null)
    const nowMs = steadyMs()
    const aheadMs = time === null ? this.#aheadMs : Number(time[0]) * 1000 + Number(time[1]) / 1000 - nowMs
    const pauseMs = Math.max(nowMs - this.#lookedMs - this.#everyMs, aheadMs - this.#aheadMs)
    this.#lookedMs = nowMs
    this.#aheadMs = aheadMs
    if (pauseMs > BACK_MS) await this.reconnected()
  }

  /** Resets the idle time of the entries of this process, so that nobody claims them. @param isAll including recently renewed ones */
  async #renew(isAll = false): Promise<void> {
    const { redis, claimIdleMs, consumer, isOurs } = this.#options
    if (!isOurs()) return
    const nowMs = steadyMs()
    await Promise.all(
      this.#options.groups().map(async ({ stream, name, entries }) => {
        // Only entries it still has: entries it gave back must not look alive.
        const old = entries.filter(({ renewedMs }) => isAll || nowMs - renewedMs > claimIdleMs / 4)
        if (old.length === 0) return
        const ids = old.map(({ id }) => id)
        await redis.run(SCRIPTS.renewEntries, [stream], [name, consumer, 0, ...ids]).catch(ignoreGone)
        for (const entry of old) entry.renewedMs = nowMs
      }),
    )
  }

  /** Marks the groups as having a subscriber: groups without one are deleted after a long time. */
  async #markSeen(): Promise<void> {
    await markGroupsSeen(
      this.#options.redis,
      this.#shared().map(({ stream, name: group }) => ({ stream, group })),
    )
  }

  // ── abandoned entries ─────────────────────────────────────────────────────

  async #claim(): Promise<void> {
    await this.#findPause()
    const { mayBegin, lose } = this.#options
    for (const group of this.#shared()) {
      if (!mayBegin()) return
      if (group.room <= 0) continue
      try {
        if (steadyMs() >= this.#notBeforeMs) await this.#claimIdle(group)
        await this.#claimFromDead(group)
      } catch (fault) {
        // One broken stream does not stop the work on the others; the trimmer reports it.
        if (isNoGroup(fault)) lose(group)
      }
    }
  }

  /** Claims entries of a former process of this name, and entries of this one whose read lost its answer. */
  async claimOwn(group: StreamGroup): Promise<void> {
    const { redis, replica } = this.#options
    for (const { name, pending } of await listConsumers(redis, group.stream, group.name))
      if (pending > 0 && replicaOfConsumer(name) === replica) await this.#claimFrom(group, name)
  }

  /** Claims at once from dead processes of this machine: they certainly do nothing any more. */
  async #claimFromDead(group: StreamGroup): Promise<void> {
    const { redis, replica } = this.#options
    for (const { name, pending } of await listConsumers(redis, group.stream, group.name)) {
      const other = replicaOfConsumer(name)
      if (pending === 0 || other === null || other === replica) continue
      // The next process of its name may start at any moment, and takes its entries back itself.
      const isDead = async (): Promise<boolean> => {
        const holder = await redis.command<string | null>('get', [replicaKey(other)])
        return holder !== null && isKnownDead(identityIn(holder))
      }
      await this.#claimFrom(group, name, isDead)
    }
  }

  async #claimFrom(group: StreamGroup, consumer: string, isLeft = async (): Promise<boolean> => true): Promise<void> {
    // Entry by entry: claimed entries of this process's own consumer stay pending there and would be found again.
    for (let from = '-'; await isLeft(); ) {
      const rows = await this.#pending(group, [from, '+', CLAIM_BATCH, consumer])
      await this.#take(group, rows, 0)
      if (rows.length < CLAIM_BATCH) return
      from = `(${rows.at(-1)![0]}`
    }
  }

  /** Claims entries idle for longer than the limit, as long as there is room. */
  async #claimIdle(group: StreamGroup): Promise<void> {
    const { claimIdleMs, mayBegin } = this.#options
    for (let count = CLAIM_BATCH; count === CLAIM_BATCH && mayBegin(); ) {
      if (group.room <= 0) return
      const rows = await this.#pending(group, ['IDLE', claimIdleMs, '-', '+', CLAIM_BATCH])
      count = await this.#take(group, rows, claimIdleMs)
    }
  }

  #pending({ stream, name }: StreamGroup, args: (string | number)[]): Promise<PendingRow[]> {
    return this.#options.redis.command<PendingRow[]>('xpending', [stream, name, ...args])
  }

  /** Entries pending here and not in hand were given back, or lost on the way. @returns the number of claimed entries */
  async #take(group: StreamGroup, rows: readonly PendingRow[], minIdleMs: number): Promise<number> {
    const known = new Set(group.entries.map(({ id }) => id))
    const theirs = rows.filter(([id]) => !known.has(id))
    await this.#takeSuspects(
      group,
      theirs.filter(([, , , times]) => times >= SUSPECT_AFTER_TIMES),
      minIdleMs,
    )
    const others = theirs.filter(([, , , times]) => times < SUSPECT_AFTER_TIMES)
    const entries = await this.#claimCounted(group, others, minIdleMs)
    const attempts = await this.#attemptsOf(group, entries)
    for (const [n, entry] of entries.entries()) this.#give(group, entry, attempts[n]!)
    return entries.length
  }

  /** Returns the recorded attempts: a thread or process had these entries, and may have recorded outcomes. */
  async #attemptsOf(group: StreamGroup, entries: readonly Entry[]): Promise<ClaimedShare[]> {
    const ids = entries.map(([id]) => id)
    const told = await this.#options.settlements.attemptsOf(group, ids)
    return told.map((share) => ({ ...(share ?? FIRST_ATTEMPT), isBegun: true, isNoted: share !== null }))
  }

  #give(group: StreamGroup, entry: Entry, share: ClaimedShare): void {
    // It may have come by another way meanwhile.
    if (!group.has(entry[0])) this.#options.deliveries.take(group, entry, share)
  }

  /** Claims entries and counts a delivery of each. */
  async #claimCounted(group: StreamGroup, rows: readonly PendingRow[], minIdleMs: number): Promise<Entry[]> {
    if (rows.length === 0) return []
    const { redis, consumer } = this.#options
    const ids = rows.map(([id]) => id)
    const args = [group.stream, group.name, consumer, minIdleMs, ...ids]
    const entries = await redis.command<(Entry | null)[]>('xclaim', args)
    // Another replica was faster, or the entry was cut from the stream and the server has dropped it.
    return entries.filter((entry): entry is Entry => entry !== null && entry[1] !== null)
  }

  // ── suspects ──────────────────────────────────────────────────────────────

  /** Claims entries without counting a delivery: most entries of a process that died are not the cause. */
  async #takeSuspects(group: StreamGroup, rows: readonly PendingRow[], minIdleMs: number): Promise<void> {
    if (rows.length === 0) return
    const { redis, consumer } = this.#options
    const times = new Map(rows.map(([id, , , count]) => [id, count]))
    const args = [group.stream, group.name, consumer, minIdleMs, ...times.keys(), 'JUSTID']
    const ids = await redis.command<string[]>('xclaim', args)
    const found = await Promise.all(ids.map((id) => redis.command<Entry[]>('xrange', [group.stream, id, id])))
    for (const [entry] of found) {
      if (entry === undefined) continue
      const runAlone: ClaimedShare['runAlone'] = (taken, deliver) => {
        this.#suspects.push({ entry: taken, times: times.get(entry[0])!, deliver })
        void this.#tryAlone()
      }
      this.#give(group, entry, { ...FIRST_ATTEMPT, runAlone })
    }
  }

  async #tryAlone(): Promise<void> {
    if (this.#isTrying) return
    this.#isTrying = true
    for (let suspect = this.#suspects.shift(); suspect !== undefined; suspect = this.#suspects.shift()) {
      const { entry, times, deliver } = suspect
      if (this.#isClosed) {
        // The end of this process waits for its entries.
        entry.group.remove(entry)
        continue
      }
      try {
        const taken = await this.#claimCounted(entry.group, [[entry.id, '', 0, times]], 0)
        if (taken.length === 0) {
          entry.group.remove(entry)
          continue
        }
      } catch {
        this.#suspects.unshift(suspect)
        await sleep(RETRY_MS)
        continue
      }
      const deaths = times >= POISON_AFTER_TIMES ? times : 1
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ALONE_MAX_MS)
        const onEnded = (): void => {
          clearTimeout(timer)
          resolve()
        }
        deliver({ ...FIRST_ATTEMPT, deaths, blackBox: processDeath(times), isBegun: true, onEnded })
      })
    }
    this.#isTrying = false
  }
}

function ignoreGone(fault: unknown): void {
  if (!isNoGroup(fault)) throw fault
}

/** The death of a whole process leaves no crash report: only the number of deliveries is known. */
function processDeath(times: number): BlackBox {
  return {
    at: new Date().toISOString(),
    lane: -1,
    reason: 'process',
    message: `The event was delivered ${times} times, and each time its process ended or stalled before it finished`,
    guilty: null,
    stack: [],
    stood_still_ms: 0,
    lived_ms: null,
    cpu_ms: null,
    cpu_ms_while_still: null,
    heap_bytes: null,
    external_bytes: null,
    in_flight: [],
    in_flight_count: 0,
    steps: [],
  }
}
