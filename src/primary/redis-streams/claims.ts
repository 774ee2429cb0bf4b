// Claims entries of consumers that are gone or stand still.
//
// A consumer stands still when the server has not seen it for EVENT_BUS_CLAIM_IDLE_MS: each process shows in time that it lives.
import type { BlackBox } from '../../contracts/registry.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { RepeatingTask } from '../../core/schedule/repeating-task.ts'
import { RELEASED, replicaKey, replicaOfConsumer } from '../../runtime/redis-streams/keys.ts'
import { type ConsumerInfo, type Entry, listConsumers, serverMs } from '../../runtime/redis-streams/stream-commands.ts'
import { identityIn, isKnownDead } from '../event-store/process-identity.ts'
import { NEW_SHARE } from '../events/consumer.ts'
import type { StreamSettlements } from './settlements.ts'
import type { ClaimedShare, StreamDeliveries } from './stream-deliveries.ts'
import type { StreamGroup, StreamProcess } from './stream-group.ts'

/** Number of entries of one claim. */
const CLAIM_BATCH = 200
/** An entry delivered this often and never acknowledged may have ended those processes: it is tried alone. */
const SUSPECT_AFTER_TIMES = 3
/** An entry delivered this often and never acknowledged becomes a dead letter. */
export const POISON_AFTER_TIMES = 6
/** Longest wait of a suspect for the one before it and its retries, milliseconds. */
const ALONE_MAX_MS = 60_000
/** Longest interval between two looks, milliseconds. */
const LOOK_MAX_MS = 5000
/** Time for other processes to reconnect and read after an outage of the store, milliseconds. */
const BACK_MS = 2500

interface ClaimsOptions extends StreamProcess {
  /** EVENT_BUS_CLAIM_IDLE_MS. */
  claimIdleMs: number
  /** The groups this process reads. */
  groups: () => readonly StreamGroup[]
  /** Called for a group that may have entries this process does not know of. */
  lose: (group: StreamGroup) => void
  deliveries: StreamDeliveries
  settlements: StreamSettlements
}

type PendingRow = [id: string, consumer: string, idleMs: number, times: number]

const isSuspect = ([, , , times]: PendingRow): boolean => times >= SUSPECT_AFTER_TIMES

export class StreamClaims {
  readonly #options: ClaimsOptions
  readonly #task = new RepeatingTask(() => this.#look())
  readonly #everyMs: number
  /** Time of the last look, and the time before which no consumer counts as standing still; by the server's clock. */
  #lookedMs = 0
  #notBeforeMs = 0
  /** A suspect has been claimed: no other one before this time, by the steady clock. */
  #aloneUntilMs = 0

  constructor(options: ClaimsOptions) {
    this.#options = options
    this.#everyMs = Math.min(LOOK_MAX_MS, Math.max(25, options.claimIdleMs / 4))
  }

  start(): void {
    this.#task.start(0)
  }

  close(): void {
    void this.#task.stop()
  }

  /** After an outage of the store every consumer looks idle. */
  reconnected(): void {
    this.#lookedMs = 0
  }

  /** Claims entries of a former process of this name, released ones, and those of this process whose read lost its answer. */
  async claimOwn(group: StreamGroup): Promise<void> {
    const { redis, consumer } = this.#options
    for (const { name, pending } of await listConsumers(redis, group.stream, group.name))
      if (pending > 0 && (name === consumer || (name === RELEASED && !group.isBroadcast)))
        await this.#claimFrom(group, name)
  }

  /** @returns time until the next look, milliseconds */
  async #look(): Promise<number> {
    const { redis, groups, lose, mayBegin } = this.#options
    try {
      const isSettled = redis.isReady && (await this.#isSettled())
      for (const group of groups()) {
        if (!redis.isReady || !mayBegin()) break
        // One broken stream does not stop the work on the others; the trimmer reports it.
        await this.#claimLeft(group, isSettled).catch(() => lose(group))
      }
    } catch {
      // The connection logs its loss.
    }
    return this.#everyMs
  }

  /** False while others may just be coming back: from an outage of the store, a pause of the machine, or a jump of the server's clock. */
  async #isSettled(): Promise<boolean> {
    const nowMs = await serverMs(this.#options.redis)
    if (Math.abs(nowMs - this.#lookedMs) > this.#everyMs + BACK_MS) this.#notBeforeMs = nowMs + BACK_MS
    this.#lookedMs = nowMs
    return nowMs >= this.#notBeforeMs
  }

  async #claimLeft(group: StreamGroup, isSettled: boolean): Promise<void> {
    if (group.isBroadcast || group.room <= 0) return
    for (const consumer of await listConsumers(this.#options.redis, group.stream, group.name))
      if (consumer.pending > 0 && (await this.#isLeft(consumer, isSettled))) await this.#claimFrom(group, consumer.name)
  }

  async #isLeft({ name, idleMs }: ConsumerInfo, isSettled: boolean): Promise<boolean> {
    const { redis, replica, claimIdleMs } = this.#options
    if (name === RELEASED) return true
    const other = replicaOfConsumer(name)
    if (other === replica) return false
    if (isSettled && idleMs >= claimIdleMs) return true
    // A dead process of this machine certainly does nothing any more. The next one of its name takes its entries back itself.
    const holder = other === null ? null : await redis.command<string | null>('get', [replicaKey(other)])
    return holder !== null && isKnownDead(identityIn(holder))
  }

  /** Claims all entries of a consumer that are not in hand, while there is room. */
  async #claimFrom(group: StreamGroup, consumer: string): Promise<void> {
    const { redis, mayBegin } = this.#options
    // Entry by entry: entries of this process's own consumer, and suspects, stay where they are.
    for (let from = '-'; mayBegin(); ) {
      const args = [group.stream, group.name, from, '+', CLAIM_BATCH, consumer]
      const rows = await redis.command<PendingRow[]>('xpending', args)
      const left = rows.filter(([id]) => !group.has(id))
      await this.#claim(
        group,
        left.filter((row) => !isSuspect(row)),
      )
      await this.#claimSuspect(group, left.filter(isSuspect), consumer)
      if (rows.length < CLAIM_BATCH || (group.state === 'open' && group.room <= 0)) return
      from = `(${rows.at(-1)![0]}`
    }
  }

  /** Claims one suspect at a time: most entries of a process that died are not the cause. */
  async #claimSuspect(group: StreamGroup, rows: readonly PendingRow[], consumer: string): Promise<void> {
    const { redis } = this.#options
    const isFree = steadyMs() >= this.#aloneUntilMs
    if (isFree && rows.length > 0) {
      this.#aloneUntilMs = steadyMs() + ALONE_MAX_MS
      if (!(await this.#claim(group, rows.slice(0, 1)))) this.#aloneUntilMs = 0
    }
    const ids = rows.slice(isFree ? 1 : 0).map(([id]) => id)
    if (consumer !== this.#options.consumer || ids.length === 0) return
    // Under its own name this process would take them for entries in hand.
    await redis.command('xclaim', [group.stream, group.name, RELEASED, 0, ...ids, 'JUSTID'])
  }

  /** @returns false if another replica was faster */
  async #claim(group: StreamGroup, rows: readonly PendingRow[]): Promise<boolean> {
    if (rows.length === 0) return false
    const { redis, consumer, deliveries, settlements } = this.#options
    // An entry that another replica has claimed since is less idle.
    const idleMs = Math.min(...rows.map(([, , idle]) => idle))
    const times = new Map(rows.map(([id, , , count]) => [id, count]))
    const args = [group.stream, group.name, consumer, idleMs, ...times.keys()]
    const reply = await redis.command<(Entry | null)[]>('xclaim', args)
    // The server has dropped entries that were cut from the stream.
    const entries = reply.filter((entry): entry is Entry => entry !== null && entry[1] !== null)
    const attempts = await settlements.attemptsOf(
      group,
      entries.map(([id]) => id),
    )
    for (const [n, entry] of entries.entries()) {
      // It may have come by another way meanwhile.
      if (group.has(entry[0])) continue
      const share = attempts[n] ?? null
      const known = { ...(share ?? NEW_SHARE), isBegun: true, isNoted: share !== null }
      deliveries.take(group, entry, { ...known, ...this.#suspicion(times.get(entry[0])!) })
    }
    return entries.length > 0
  }

  #suspicion(times: number): Partial<ClaimedShare> {
    if (times < SUSPECT_AFTER_TIMES) return {}
    const deaths = times >= POISON_AFTER_TIMES ? times : 1
    return { deaths, blackBox: processDeath(times), onGone: this.#suspectGone }
  }

  readonly #suspectGone = (): void => {
    this.#aloneUntilMs = 0
    this.#task.runWithin(0)
  }
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
