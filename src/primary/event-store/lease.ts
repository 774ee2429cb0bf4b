// The lease of this process among the processes that share a database, and its view of the other leases.
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { Clock } from '../../core/schedule/clock.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'
import type { StoreMemory } from '../../transport/memory/store-memory.ts'
import type { Processes } from './process-identity.ts'

/** Time a member counts as alive after its last renewal, seconds. */
const LEASE_S = 10
/** Interval between two renewals, milliseconds. */
export const RENEW_MS = 1000
/** Time since the last renewal after which nothing begins, milliseconds: less than the lease, so that no other process has begun it. */
const TRUSTED_MS = 8000
/** Time for which a lapsed lease is watched, milliseconds: after an outage of the server, its member may still renew it. */
const LAPSED_MS = 2500
/** A lease without a renewal for this long is over even before its end, milliseconds: somebody may have set the server's clock back. */
const STILL_MS = 3000 * LEASE_S
/** After a pause this long our view of other leases is stale, milliseconds. */
const BLIND_MS = 3000

const ENTER = `INSERT INTO heddle_member (replica, identity, until)
  VALUES ($1, $2, clock_timestamp() + interval '${LEASE_S} s') RETURNING id`
const RENEW = `UPDATE heddle_member SET until = clock_timestamp() + interval '${LEASE_S} s' WHERE id = $1`
const OTHERS = `SELECT id, replica, identity, until < clock_timestamp() AS has_lapsed, CAST(until AS text) AS until, groups FROM heddle_member`

export interface Member {
  id: number
  replica: string
  identity: string
  has_lapsed: boolean
  until: string
  /** Grows when the member's groups change. */
  groups: number
}

export interface LeaseParts {
  database: () => StoreDatabase
  clock: Clock
  /** Tells the threads whether they may begin. */
  memory: StoreMemory
  /** REPLICA_ID, for messages. */
  replica: string
  processes: Processes
}

/**
 * ```
 *   out ──► held ──► lost ──► out     others have removed this member; it takes another number if it has delivered nothing
 *            └─────► left             this process ends
 * ```
 * One that is `held` and was not renewed for 8 s is not valid: nothing begins until it is renewed (`isValid`).
 */
type LeaseState = 'out' | 'held' | 'lost' | 'left'

export class Lease {
  readonly #parts: LeaseParts
  #state: LeaseState = 'out'
  #id = 0
  #trustedUntilMs = 0
  /** Leases of others, and since when each is unchanged. */
  readonly #seen = new Map<number, { until: string; sinceMs: number }>()
  #lookedMs = Number.NEGATIVE_INFINITY

  constructor(parts: LeaseParts) {
    this.#parts = parts
  }

  /** Number of this member; 0 until it has one. */
  get id(): number {
    return this.#id
  }

  get state(): LeaseState {
    return this.#state
  }

  /** True while deliveries may begin: no other process can have taken our slots. */
  get isValid(): boolean {
    return this.#state === 'held' && this.#parts.clock.steadyMs() < this.#trustedUntilMs
  }

  /** True once another process may have taken our slots. */
  get isOver(): boolean {
    return this.#parts.clock.steadyMs() >= this.#trustedUntilMs - TRUSTED_MS + 1000 * LEASE_S
  }

  /** Gets a member number. Does nothing if it has one. */
  async enter(): Promise<void> {
    if (this.#state === 'held') return
    const { database, clock, replica, processes } = this.#parts
    const sentMs = clock.steadyMs()
    const row = await database().queryOne<{ id: number }>(ENTER, [replica, processes.own()])
    this.#id = Number(row!.id)
    this.#state = 'held'
    this.#trust(sentMs)
  }

  /** Does not wait for other statements of this process. @throws EVENT_BUS_UNAVAILABLE if others have removed this member */
  async renew(): Promise<void> {
    const { database, clock } = this.#parts
    const sentMs = clock.steadyMs()
    const db = database()
    const { rowCount } = await (db.urgent?.(RENEW, [this.#id]) ?? db.execute(RENEW, [this.#id]))
    if (rowCount === 1) {
      this.#trust(sentMs)
      return
    }
    if (this.#state === 'held') this.#state = 'lost'
    this.#parts.memory.trustFor(0)
    throw new HeddleError('EVENT_BUS_UNAVAILABLE', 'Other processes have taken over the slots of this one')
  }

  #trust(sentMs: number): void {
    const { clock, memory } = this.#parts
    this.#trustedUntilMs = sentMs + TRUSTED_MS
    memory.trustFor(this.#trustedUntilMs - clock.steadyMs())
  }

  /** Returns all members, including this one. */
  members(): Promise<Member[]> {
    return this.#parts.database().query<Member>(OTHERS)
  }

  /** Returns the members with a lapsed lease, or known to have ended. */
  deadOf(members: readonly Member[]): Member[] {
    const nowMs = this.#parts.clock.steadyMs()
    if (nowMs - this.#lookedMs > BLIND_MS) this.#seen.clear()
    this.#lookedMs = nowMs
    const others = members.filter(({ id }) => Number(id) !== this.#id)
    const ids = new Set(others.map(({ id }) => Number(id)))
    for (const id of this.#seen.keys()) if (!ids.has(id)) this.#seen.delete(id)
    return others.filter((other) => this.#isDead(other, nowMs))
  }

  #isDead({ id, identity, until, has_lapsed }: Member, nowMs: number): boolean {
    const seen = this.#seen.get(Number(id))
    if (seen?.until !== until) this.#seen.set(Number(id), { until, sinceMs: nowMs })
    const stillMs = seen?.until === until ? nowMs - seen.sinceMs : 0
    return this.#parts.processes.isKnownDead(identity) || stillMs >= (has_lapsed ? LAPSED_MS : STILL_MS)
  }

  left(): void {
    this.#state = 'left'
  }

  /** Lets a member get another number if it was removed before it delivered anything. */
  reset(): void {
    this.#state = 'out'
    this.#seen.clear()
  }
}
