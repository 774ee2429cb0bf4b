// This process among those that share a database: its lease, and those of the others.
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { Clock } from '../../core/schedule/clock.ts'
import type { LogDatabase } from '../../runtime/event-store/database.ts'
import type { LogMemory } from '../../transport/memory/log-memory.ts'
import type { Processes } from '../streams/process-identity.ts'

/** How long a member counts as living after its last renewal, seconds. */
const LEASE_S = 10
/** Without a renewal nothing begins any more after so long, milliseconds: before another member may begin with it. */
const TRUSTED_MS = 8000
/** A lease that is over is watched for so long, milliseconds: where the server was away, its member renews it when it is back. */
const LAPSED_MS = 2500
/** A lease that nobody renews for so long is over, however far its end is: the server's clock was set back, milliseconds. */
const STILL_MS = 3000 * LEASE_S
/** After a pause this long the view of other leases is stale, milliseconds. */
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
  /** Grows when its groups change. */
  groups: number
}

export interface LeaseParts {
  database: () => LogDatabase
  clock: Clock
  /** The threads ask it before they begin. */
  memory: LogMemory
  /** REPLICA_ID, for people. */
  replica: string
  processes: Processes
}

/**
 * ```
 *   out ──► held ──► lost     others have removed it
 *            └─────► left     this process ends
 * ```
 */
type LeaseState = 'out' | 'held' | 'lost' | 'left'

export class Lease {
  readonly #parts: LeaseParts
  #state: LeaseState = 'out'
  #id = 0
  #trustedUntilMs = 0
  /** Leases of others, and since when each is as it is. */
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

  /** Something may begin: no other process can have taken its slot. */
  get isValid(): boolean {
    return this.#state === 'held' && this.#parts.clock.steadyMs() < this.#trustedUntilMs
  }

  /** Gets a number. It may be called again. */
  async enter(): Promise<void> {
    if (this.#state === 'held') return
    const { database, clock, replica, processes } = this.#parts
    const sentMs = clock.steadyMs()
    const row = await database().queryOne<{ id: number }>(ENTER, [replica, processes.own()])
    this.#id = Number(row!.id)
    this.#state = 'held'
    this.#trust(sentMs)
  }

  /** @throws EVENT_BUS_UNAVAILABLE when others have removed it */
  async renew(): Promise<void> {
    const { database, clock } = this.#parts
    const sentMs = clock.steadyMs()
    const { rowCount } = await database().execute(RENEW, [this.#id])
    if (rowCount === 1) {
      this.#trust(sentMs)
      return
    }
    if (this.#state === 'held') this.#state = 'lost'
    this.#parts.memory.trustFor(0)
    throw new HeddleError('EVENT_BUS_UNAVAILABLE', 'Other processes have taken over from this one')
  }

  #trust(sentMs: number): void {
    const { clock, memory } = this.#parts
    this.#trustedUntilMs = sentMs + TRUSTED_MS
    memory.trustFor(this.#trustedUntilMs - clock.steadyMs())
  }

  /** All members, this one as well. */
  members(): Promise<Member[]> {
    return this.#parts.database().query<Member>(OTHERS)
  }

  /** Those of the members that have ended, as far as can be told. */
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

  /** It has lost its number before it delivered anything: it can get another one. */
  reset(): void {
    this.#state = 'out'
    this.#seen.clear()
  }
}
