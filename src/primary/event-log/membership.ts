// The processes of a database, and which of them has which keys.

import type { LogLevel } from '../../contracts/logger.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { Clock, Timer } from '../../core/schedule/clock.ts'
import { withTimeout } from '../../core/schedule/waiting.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import {
  AWAIT_INSERTS,
  type EventRow,
  NO_PROCESS,
  TAKEN_OVER,
  WAITS_FOR_GROUP,
} from '../../runtime/event-log/event-rows.ts'
import { SLOT, SLOTS } from '../../runtime/event-log/tables.ts'
import type { LogDatabase } from '../../runtime/event-store/database.ts'
import { BLOCK_POSITIONS } from '../../transport/memory/log-memory.ts'
import type { Processes } from '../streams/process-identity.ts'
import { dropCopies } from './shared-work.ts'
import { PAGE_ROWS, type StoredRow, withDeliveries } from './sql-log.ts'

/** Rows that are changed in one statement. */
const PAGE = 1000

interface SlotRow {
  slot: number
  holder: number
  heir: number
}

/**
 * The slots of ordering keys that this process holds: it alone delivers the events of their keys. A slot is held for as long as the process is
 * known. When another process is to have it, it is handed over as soon as nothing of it is in hand here.
 */
export class KeySlots {
  readonly #database: () => LogDatabase
  readonly #epoch: () => number
  #held: ReadonlySet<number> = new Set()
  #leaving: ReadonlySet<number> = new Set()

  /** @param epoch number of this process */
  constructor(database: () => LogDatabase, epoch: () => number) {
    this.#database = database
    this.#epoch = epoch
  }

  /** Those that are to be handed over: nothing more of them is taken. */
  get leaving(): ReadonlySet<number> {
    return this.#leaving
  }

  /** Those that are this process's, as far as it knows. */
  get held(): ReadonlySet<number> {
    return this.#held
  }

  get hasAll(): boolean {
    return this.#held.size === SLOTS
  }

  /** Takes all slots, if nothing of other processes is there. @returns false otherwise */
  async takeAll(): Promise<boolean> {
    const { rowCount } = await this.#database().execute(
      `UPDATE heddle_slot SET holder = $1, heir = 0 WHERE NOT EXISTS (SELECT 1 FROM heddle_process WHERE epoch <> $1)
         AND NOT EXISTS (SELECT 1 FROM heddle_event WHERE owner NOT IN ($1, ${WAITS_FOR_GROUP}))`,
      [this.#epoch()],
    )
    if (rowCount === SLOTS) this.#held = new Set(Array.from({ length: SLOTS }, (_, slot) => slot))
    return rowCount === SLOTS
  }

  /**
   * Takes the slots that are free and its own by rights, and begins to leave those that others should have.
   * @param members numbers of the processes that deliver events
   */
  async look(members: readonly number[]): Promise<void> {
    const me = this.#epoch()
    const rows = await this.#database().query<SlotRow>('SELECT slot, holder, heir FROM heddle_slot')
    const isMine = ({ slot }: SlotRow): boolean => heirOf(Number(slot), members) === me
    const own = rows.filter(({ holder }) => Number(holder) === me)
    await this.#take(rows.filter((row) => Number(row.holder) !== me && isMine(row)))
    await this.#leave(
      own.filter((row) => Number(row.heir) === 0 && !isMine(row)),
      members,
    )
    await this.#learn()
  }

  async #take(rows: readonly SlotRow[]): Promise<void> {
    if (rows.length === 0) return
    await this.#database().execute(
      `UPDATE heddle_slot SET holder = $1, heir = 0 WHERE ${among(rows)}
         AND NOT EXISTS (SELECT 1 FROM heddle_process WHERE epoch = holder)
         AND EXISTS (SELECT 1 FROM heddle_process WHERE epoch = $1 AND adopter IS NULL)`,
      [this.#epoch()],
    )
  }

  async #leave(rows: readonly SlotRow[], members: readonly number[]): Promise<void> {
    for (const member of members) {
      const its = rows.filter(({ slot }) => heirOf(Number(slot), members) === member)
      if (its.length === 0) continue
      await this.#database().execute(`UPDATE heddle_slot SET heir = $1 WHERE ${among(its)} AND holder = $2`, [
        member,
        this.#epoch(),
      ])
    }
  }

  async #learn(): Promise<void> {
    const rows = await this.#database().query<SlotRow>('SELECT slot, holder, heir FROM heddle_slot WHERE holder = $1', [
      this.#epoch(),
    ])
    const slotsOf = (isLeaving: boolean): Set<number> =>
      new Set(rows.flatMap(({ slot, heir }) => ((Number(heir) !== 0) === isLeaving ? [Number(slot)] : [])))
    this.#held = slotsOf(false)
    this.#leaving = slotsOf(true)
  }

  /** They were of another number of this process. */
  forget(): void {
    this.#held = new Set()
    this.#leaving = new Set()
  }

  /** @returns slots of events with keys, by their positions; those of the log alone */
  async slotsOf(positions: readonly number[]): Promise<ReadonlyMap<number, number>> {
    const rows = await this.#database().query<{ seq: number; slot: number }>(
      `SELECT seq, ${SLOT} AS slot FROM heddle_event WHERE seq = ANY($1::bigint[])`,
      [`{${positions.join(',')}}`],
    )
    return new Map(rows.map(({ seq, slot }) => [Number(seq), Number(slot)]))
  }

  /**
   * Hands over slots that it leaves.
   * @param leaving those of which nothing is in hand any more; it may have begun to leave others since that was seen
   * @returns positions of the events that it had: they are their heirs'
   */
  async handOver(leaving: ReadonlySet<number>): Promise<number[]> {
    const slots = [...leaving].join(', ')
    const freed = await this.#database().query<{ seq: number }>(
      `WITH freed AS (UPDATE heddle_event SET owner = ${NO_PROCESS} WHERE owner = $1 AND key IS NOT NULL AND ${SLOT} IN (${slots}) RETURNING seq),
       left_slots AS (UPDATE heddle_slot SET holder = heir, heir = 0 WHERE holder = $1 AND slot IN (${slots}) RETURNING slot)
       SELECT seq FROM freed`,
      [this.#epoch()],
    )
    this.#leaving = new Set([...this.#leaving].filter((slot) => !leaving.has(slot)))
    return freed.map(({ seq }) => Number(seq))
  }
}

const among = (rows: readonly SlotRow[]): string => `slot IN (${rows.map(({ slot }) => Number(slot)).join(', ')})`

/** The process that is to have a slot: when one comes or goes, only its own slots change hands. */
function heirOf(slot: number, members: readonly number[]): number {
  let best = 0
  let bestRank = -1
  for (const member of members) {
    const rank = mixed(member * SLOTS + slot)
    if (rank > bestRank) [best, bestRank] = [member, rank]
  }
  return best
}

/** An integer that has little to do with the one that is given: the last steps of MurmurHash3. */
function mixed(value: number): number {
  let hash = value | 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/**
 * The events with keys that an ended process had, and its slots, are there for others.
 * @param isClean it has ended in order
 * @returns how many events that are
 */
export async function freeKeyed(database: LogDatabase, epoch: number, isClean: boolean): Promise<number> {
  let count = 0
  for (let from = 0; ; ) {
    const { rows } = await database.execute<{ seq: number }>(
      `UPDATE heddle_event SET owner = ${NO_PROCESS}, recovered = recovered + $3::int WHERE owner = $1 AND seq IN
         (SELECT seq FROM heddle_event WHERE owner = $1 AND key IS NOT NULL AND seq > $2 ORDER BY seq LIMIT ${PAGE}) RETURNING seq`,
      [epoch, from, isClean ? 0 : 1],
    )
    count += rows.length
    if (rows.length === 0) break
    from = Math.max(...rows.map(({ seq }) => Number(seq)))
  }
  await database.execute('UPDATE heddle_slot SET holder = heir, heir = 0 WHERE holder = $1', [epoch])
  return count
}

/** How long a process counts as living after its last renewal, seconds. */
const LEASE_S = 15
const RENEW_MS = 4000
/** A lease that is the same for so long, by this process's steady clock, has lapsed, milliseconds. */
const STILL_MS = 2000 * LEASE_S
/** A lease that has lapsed is looked at for so long: where the server was away, its process renews it when it is back, milliseconds. */
const LAPSED_MS = 2500
/** Who has not looked for so long knows nothing of the leases, milliseconds. */
const BLIND_MS = 3000
/** How long the end of this process waits until the others know of it, milliseconds. */
const LEAVE_MS = 1000
/** How often the other processes are looked at, milliseconds. */
const LOOK_MS = 1000
/** When it is looked, after an ended process has been taken over, whether rows have come since, milliseconds. */
const STRAGGLERS_MS = 30_000
/** Blocks of positions that are there before they are needed. */
const SPARE_BLOCKS = 2

interface MembershipOptions {
  log: EventLog
  /** REPLICA_ID, for people: what tells processes apart is their epoch. */
  replica: string
  processes: Processes
  /** Another process has taken over the events of this one. Called once. */
  onLost: (message: string) => void
  /** Told of the other processes that are known, from time to time: living ones, and those that have ended and not been taken over for good. */
  onLook: (others: readonly OtherProcess[]) => Promise<void>
  report: (level: LogLevel, message: string) => void
}

export interface OtherProcess {
  epoch: number
  replica: string
  identity: string
  has_lapsed: boolean
  expires: string
  is_clean: number
  is_ready: number
  /** Null while it is itself. */
  adopter: number | null
  /** The highest number of a process with which it reckons. */
  knows: number
}

/** A process that has ended, whose events are taken over page by page. */
interface Orphans {
  epoch: number
  from: number
  isClean: boolean
  events: number
  replica: string
}

/**
 * This process among those that share the log on a server: a row of `heddle_process` with a lease by the server's clock. Its number, the epoch,
 * is on every row that it stores.
 *
 * What a process leaves is taken over by one other: whose number is in `adopter`. From then on no INSERT with the old number succeeds (see
 * ownership.ts). The adopter waits for those that are under way, and changes the number of the rows in pages, as it has room for them.
 */
export class Membership {
  readonly #options: MembershipOptions
  readonly #clock: Clock
  /** Processes that this one takes over, the first of them at present. */
  readonly #orphans: Orphans[] = []
  /** When it has looked last, by `steadyMs`. */
  #metMs = Number.NEGATIVE_INFINITY
  /** The leases of others, and since when each is as it is. */
  readonly #leases = new Map<number, { expires: string; sinceMs: number }>()
  #epoch = 0
  #renewedMs = 0
  #isLooking = false
  #mustLookAgain = false
  /** When rows are looked for whose process is not known any more. */
  #stragglersAtMs = 0
  /** First positions of the blocks of this process. */
  readonly bases: number[] = []
  #timer: Timer | undefined
  #fault: string | null = null
  #status: 'out' | 'in' | 'lost' | 'left' = 'out'

  constructor(options: MembershipOptions) {
    this.#options = options
    this.#clock = options.log.clock
  }

  /** Why the log cannot be used at present; null when it can. */
  get fault(): string | null {
    return this.#fault
  }

  /** True while there are events of ended processes to be delivered here. */
  get hasOrphans(): boolean {
    return this.#orphans.length > 0
  }

  /** The number of the ended process whose events are taken over at present; 0: none. */
  get adopting(): number {
    return this.#orphans[0]?.epoch ?? 0
  }

  /** The number of this process. */
  get epoch(): number {
    return this.#epoch
  }

  /** True for the position of an event that this process has stored. */
  isOwn(position: number): boolean {
    return this.bases.some((base) => position >= base && position < base + BLOCK_POSITIONS)
  }

  /** Gets a number. It may be called again. */
  async enter(): Promise<void> {
    if (this.#epoch !== 0) return
    const { log, replica, processes } = this.#options
    const row = await log.database.queryOne<{ epoch: number }>(
      `INSERT INTO heddle_process (epoch, replica, identity, expires_at)
       VALUES (nextval('heddle_epoch'), $1, $2, now() + interval '${LEASE_S} s') RETURNING epoch`,
      [replica, processes.own()],
    )
    this.#epoch = Number(row!.epoch)
    this.#renewedMs = this.#clock.steadyMs()
  }

  /** Lets all threads write under the number, and looks at the other processes from now on. */
  async open(): Promise<void> {
    await this.#fetchBlocks()
    this.#options.log.memory.openBlocks(this.#epoch)
    this.#status = 'in'
    this.#timer = this.#clock.every(LOOK_MS, () => void this.look()).unref()
  }

  /** Renews the lease, and takes over what ended processes have left; while it does so already, once more afterwards. */
  async look(): Promise<void> {
    if (this.#isLooking) this.#mustLookAgain = true
    if (this.#isLooking || this.#status !== 'in') return
    this.#isLooking = true
    this.#mustLookAgain = false
    try {
      await this.#fetchBlocks()
      if (this.#status === 'in') await this.#options.onLook(await this.meet())
      if (this.#fault !== null) this.#options.report('INFO', 'The event log can be used again')
      this.#fault = null
    } catch (error) {
      // The next look does what was to be done. Where nobody reaches the database, nobody finds that a lease has lapsed.
      const fault = `the event log cannot be used: ${messageOf(error)}`
      if (this.#fault === null) this.#options.report('WARNING', fault)
      this.#fault = fault
    } finally {
      this.#isLooking = false
    }
    if (this.#mustLookAgain) await this.look()
  }

  /** Renews the lease when it is time to. */
  async renew(): Promise<void> {
    const now = this.#clock.steadyMs()
    if (now - this.#renewedMs < RENEW_MS) return
    const { rowCount } = await this.#options.log.database.execute(
      `UPDATE heddle_process SET expires_at = now() + interval '${LEASE_S} s' WHERE epoch = $1 AND adopter IS NULL`,
      [this.#epoch],
    )
    if (rowCount === 1) {
      this.#renewedMs = now
      return
    }
    if (this.#status === 'in') this.#lost()
    else this.#epoch = 0
    throw new HeddleError('EVENT_BUS_UNAVAILABLE', TAKEN_OVER)
  }

  #lost(): void {
    this.#status = 'lost'
    this.#clock.cancel(this.#timer)
    this.#orphans.length = 0
    this.#options.onLost(
      `Another process has taken over the events of this one, which had stood still or was cut off from the database for more than ${LEASE_S} s`,
    )
  }

  /** It has lost its number before it delivered anything: it can get another one. */
  reset(): void {
    this.#status = 'out'
    this.#epoch = 0
    this.#leases.clear()
  }

  async #fetchBlocks(): Promise<void> {
    const { database, memory } = this.#options.log
    while (memory.blocksLeft < SPARE_BLOCKS) {
      const row = await database.queryOne<{ base: number }>("SELECT nextval('heddle_position') AS base")
      const base = Number(row!.base) * BLOCK_POSITIONS
      this.bases.push(base)
      memory.addBlock(base)
    }
  }

  // ── what ended processes have left ────────────────────────────────────────

  /** Sees who is there, and takes over from those that have ended. @returns the others */
  async meet(): Promise<OtherProcess[]> {
    const { database } = this.#options.log
    if (this.#clock.steadyMs() >= this.#stragglersAtMs) await this.#findStragglers()
    await this.renew()
    const others = await database.query<OtherProcess>(
      `SELECT epoch, replica, identity, expires_at < now() AS has_lapsed, CAST(expires_at AS text) AS expires, is_clean, is_ready, adopter, knows
       FROM heddle_process WHERE epoch <> $1 ORDER BY epoch`,
      [this.#epoch],
    )
    const nowMs = this.#clock.steadyMs()
    if (nowMs - this.#metMs > BLIND_MS) this.#leases.clear()
    this.#metMs = nowMs
    const epochs = new Set(others.map(({ epoch }) => Number(epoch)))
    for (const epoch of this.#leases.keys()) if (!epochs.has(epoch)) this.#leases.delete(epoch)
    for (const other of others) {
      const epoch = Number(other.epoch)
      if (this.#orphans.some((each) => each.epoch === epoch)) continue
      const stillMs = this.#stillMs(epoch, other.expires)
      const isDead = this.#options.processes.isKnownDead(other.identity) || stillMs > STILL_MS
      const hasLapsed = other.has_lapsed && (Number(other.is_clean) === 1 || stillMs >= LAPSED_MS)
      if (!hasLapsed && !isDead) continue
      if (await this.#claim(epoch, isDead)) {
        const isClean = Number(other.is_clean) === 1
        other.adopter = this.#epoch
        const events = await freeKeyed(database, epoch, isClean)
        this.#orphans.push({ epoch, from: 0, isClean, events, replica: other.replica })
      }
    }
    return others
  }

  /** For how long nobody has renewed a lease, as far as this process has looked: one is none after long, however far its end is, since the server's clock was set back or somebody else has written it. */
  #stillMs(epoch: number, expires: string): number {
    const nowMs = this.#clock.steadyMs()
    const seen = this.#leases.get(epoch)
    if (seen?.expires === expires) return nowMs - seen.sinceMs
    this.#leases.set(epoch, { expires, sinceMs: nowMs })
    return 0
  }

  /**
   * Rows of processes that are not known any more: one may have begun to store something right before it was taken over, and stood still in between.
   * They are taken over like those of any ended process.
   */
  async #findStragglers(): Promise<void> {
    await this.#options.log.database.execute(
      `INSERT INTO heddle_process (epoch, replica, identity, expires_at)
       SELECT DISTINCT owner, 'unknown', '{}', '-infinity'::timestamptz FROM heddle_event
       WHERE owner > ${NO_PROCESS} AND owner NOT IN (SELECT epoch FROM heddle_process) ON CONFLICT (epoch) DO NOTHING`,
    )
    this.#stragglersAtMs = Number.POSITIVE_INFINITY
  }

  /** Exactly one of several that try it succeeds, unless that one has ended, too. */
  async #claim(epoch: number, isKnownDead: boolean): Promise<boolean> {
    const { database } = this.#options.log
    const { rowCount } = await database.execute(
      `UPDATE heddle_process AS ended SET adopter = $1
       WHERE epoch = $2 AND ${isKnownDead ? '' : 'expires_at < now() AND '}(adopter IS NULL OR adopter = $1
         OR NOT EXISTS (SELECT 1 FROM heddle_process WHERE epoch = ended.adopter AND adopter IS NULL AND expires_at > now()))
         AND EXISTS (SELECT 1 FROM heddle_process WHERE epoch = $1 AND adopter IS NULL)`,
      [this.#epoch, epoch],
    )
    if (rowCount === 0) return false
    await database.execute(AWAIT_INSERTS, [epoch])
    return true
  }

  /** Takes over the next page of events: the oldest first. Empty when an ended process has left no more. */
  async nextPage(): Promise<StoredRow[]> {
    const orphans = this.#orphans[0]
    if (orphans === undefined) return []
    const { database } = this.#options.log
    const { rows } = await database.execute<EventRow>(ADOPT_PAGE, [
      this.#epoch,
      orphans.epoch,
      orphans.from,
      orphans.isClean ? 0 : 1,
    ])
    rows.sort((a, b) => Number(a.seq) - Number(b.seq))
    if (rows.length > 0) {
      orphans.from = Number(rows.at(-1)!.seq)
      orphans.events += rows.length
      return withDeliveries(database, rows)
    }
    await database.execute('DELETE FROM heddle_process WHERE epoch = $1 AND adopter = $2', [orphans.epoch, this.#epoch])
    await dropCopies(database)
    if (this.#orphans[0] === orphans) this.#orphans.shift()
    this.#stragglersAtMs = this.#clock.steadyMs() + STRAGGLERS_MS
    if (orphans.events > 0)
      this.#options.report(
        'INFO',
        `${orphans.events} events that the ended process ${orphans.replica} had are delivered by others`,
      )
    return []
  }

  /** Leaves what is left to the other processes, or to the next one. */
  async leave(): Promise<void> {
    this.#clock.cancel(this.#timer)
    if (this.#status !== 'in') return
    this.#status = 'left'
    const told = this.#options.log.database.execute(LEAVE, [this.#epoch])
    // A server that is away must not hold up the end: the lease lapses.
    await withTimeout(told, LEAVE_MS, undefined, this.#clock).catch(() => {})
  }
}

/** What has a key is left to those that deliver the keys. */
const LEAVE = `
  WITH left_in_order AS (UPDATE heddle_process SET expires_at = '-infinity', is_clean = 1 WHERE epoch = $1 AND adopter IS NULL RETURNING epoch),
  freed AS (UPDATE heddle_event SET owner = ${NO_PROCESS} WHERE owner IN (SELECT epoch FROM left_in_order) AND key IS NOT NULL)
  UPDATE heddle_slot SET holder = heir, heir = 0 WHERE holder IN (SELECT epoch FROM left_in_order)`

/** Changes the owner of a page of rows, while both processes are what this one takes them for. */
const ADOPT_PAGE = `
  UPDATE heddle_event SET owner = $1, recovered = recovered + $4::int
  WHERE owner = $2 AND seq IN (SELECT seq FROM heddle_event WHERE owner = $2 AND seq > $3 ORDER BY seq LIMIT ${PAGE_ROWS})
    AND (SELECT count(*) FROM heddle_process WHERE (epoch = $1 AND adopter IS NULL) OR (epoch = $2 AND adopter = $1)) = 2
  RETURNING seq, id, event, envelope, payload, key, due_ms, expires_ms, is_split, recovered`
