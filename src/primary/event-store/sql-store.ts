// Reads the tables of the event store.
import type { Queryable } from '../../contracts/db.ts'
import { ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import { ALL_GROUPS, BROKER } from '../../runtime/event-store/delivery-rows.ts'
import { envelopeOf, keyColumnOf, keyOf, shareSql, timestampOf } from '../../runtime/event-store/event-columns.ts'
import { IS_READY_OF_SHARE } from '../../runtime/event-store/store-tables.ts'
import { deleteReplaced, IF_ALONE, UNIQUE_OF_GROUP } from '../../runtime/event-store/unique-rows.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { StoreMemory } from '../../transport/memory/store-memory.ts'
import type { GroupKind, GroupRow } from '../../transport/store-changes.ts'
import { IS_HEAD, raiseOfShares, SHARE_WINDOW, SHARES_COUNTED } from './share-rows.ts'
import type { DeliveryStore, GroupPage, Page } from './store.ts'
import { type DeliveryRow, deliveryOf, TRIED } from './stored-rows.ts'
import type { ShareAsk } from './turns.ts'

const PLACE = 'coalesce(place, seq)'
/** Upper bound of places: a foreign row above it, or without a number, would end the order of its group. */
const LAST_PLACE = 2 ** 52
const COLUMNS = `seq, coalesce(place, seq) AS place, thread, event_id AS id, event, envelope, payload, key, ${TRIED.sqlite} AS tried`
/** With `+`: otherwise SQLite would compile a statement anew for each value of a limit, or of a column outside of ORDER BY. */
const GROUP = `SELECT ${COLUMNS} FROM heddle_delivery WHERE grp = +$1 AND ${PLACE} > $2 AND ${PLACE} < ${LAST_PLACE} AND due_ms = 0 ORDER BY ${PLACE} LIMIT +$3`
const UNSHARED_GROUP = GROUP.replace('AND due_ms = 0', `AND due_ms = 0 AND share IS NULL AND ${IS_HEAD}`)
/** The first share between $2 and $3, exclusive, by the index alone. */
const NEXT_SHARE = `SELECT share FROM heddle_delivery WHERE grp = +$1 AND share > $2 || '' AND share < $3 || '' AND ${IS_READY_OF_SHARE} ORDER BY share LIMIT 1`
/** The subquery keeps its order: SQLite does not merge it, because of its limit. */
const SHARE = `SELECT ${COLUMNS} FROM (SELECT * FROM heddle_delivery WHERE grp = +$1 AND share = $2 || '' AND ${IS_READY_OF_SHARE} AND ${PLACE} > $3
    AND seq NOT IN (SELECT value FROM json_each($4)) ORDER BY ${PLACE} LIMIT ${SHARE_WINDOW}) AS heddle_delivery WHERE ${IS_HEAD} LIMIT +$5`
const FIRST_OF_KEYS = `SELECT k.value AS key, (SELECT coalesce(share, '') FROM heddle_delivery WHERE grp = +$1 AND key = k.value AND due_ms = 0 ORDER BY ${PLACE} LIMIT 1) AS share
  FROM json_each($2) AS k`
const PASS_SHARE = `SELECT ${PLACE} AS place FROM heddle_delivery WHERE grp = $1 AND share = $2 AND ${IS_READY_OF_SHARE} AND ${PLACE} > $3
  ORDER BY ${PLACE} LIMIT 1 OFFSET ${SHARE_WINDOW - 1}`
const KEY = `SELECT ${COLUMNS} FROM heddle_delivery WHERE grp = +$1 AND key = $2 || '' AND ${PLACE} > $3 AND ${PLACE} < ${LAST_PLACE} AND due_ms = 0 ORDER BY ${PLACE} LIMIT +$4`

/** With the number in the text: the index of these rows needs it. */
const HAS_UNASSIGNED = `SELECT 1 AS found FROM heddle_delivery WHERE grp = ${ALL_GROUPS} LIMIT 1`
/** By the indexes: the rows themselves are much larger. */
const COUNT = `SELECT (SELECT count(*) FROM heddle_delivery WHERE due_ms = 0) + (SELECT count(*) FROM heddle_delivery WHERE due_ms > 0) AS count`
const IN_USE = 'in_use'
/** Groups of the previous process: it wrote the time once an hour. */
const RECENT_GROUPS = 'SELECT id FROM heddle_group WHERE seen_ms > (SELECT max(seen_ms) FROM heddle_group) - 3600000'

const RAISE_CRASHES = `UPDATE heddle_delivery SET crashes = crashes + 1 WHERE seq IN (
  SELECT d.seq FROM heddle_delivery AS d WHERE d.grp = +$1 AND d.due_ms = 0 AND (d.key IS NULL OR (
    NOT EXISTS (SELECT 1 FROM heddle_parked AS p WHERE p.grp = $1 AND p.key = d.key)
    AND (SELECT 1 FROM heddle_delivery AS o WHERE o.grp = $1 AND o.key = d.key AND o.due_ms = 0 AND coalesce(o.place, o.seq) < coalesce(d.place, d.seq)
      ORDER BY coalesce(o.place, o.seq) LIMIT 1 OFFSET +$3) IS NULL))
  ORDER BY coalesce(d.place, d.seq) LIMIT +$2) RETURNING seq`

export interface MovedRow {
  seq: number
  place: number
}

/** A change of the system's clock. */
export interface ClockJump {
  /** The difference; negative: back. Even. */
  ms: number
  /** Rows above this number belong to this process. */
  after: number
  /** Last row with a time set by this process. */
  noted: readonly number[]
  /** Rows above this number were stored by the new clock if stored between these two times, milliseconds since the epoch. */
  known: number
  sinceMs: number
  untilMs: number
}

/** A group as stored. */
export interface StoredGroup extends Omit<GroupRow, 'seenMs'> {
  seenMs: number
  /** True if another process has it. */
  isElsewhere: boolean
}

/** A blocked key of a group. */
export interface ParkedKey {
  key: string
  deadLetter: string
  /** Place of the dead letter in the order of the group. */
  place: number
}

/** The event store in the database of the tool `db`, as the primary reads it. */
export class SqlStore implements DeliveryStore {
  readonly #database: () => StoreDatabase
  readonly #memory: Pick<StoreMemory, 'laterInserts' | 'isLaterOpen'>
  readonly #groupsAreStored: () => Promise<void>
  /** Called when rows have got their groups: a round may have passed their shares. */
  onAssigned: () => void = () => {}
  /** Number of inserts for later groups that are known to have their groups. */
  #assigned = -1

  /**
   * @param memory of the store
   * @param groupsAreStored resolves when the groups of all subscribers are stored
   */
  constructor(
    database: () => StoreDatabase,
    memory: Pick<StoreMemory, 'laterInserts' | 'isLaterOpen'>,
    groupsAreStored: () => Promise<void>,
  ) {
    this.#database = database
    this.#memory = memory
    this.#groupsAreStored = groupsAreStored
  }

  get database(): StoreDatabase {
    return this.#database()
  }

  async readGroup(group: number, after: number, limit: number, areTurnsTaken: boolean): Promise<GroupPage> {
    if (!areTurnsTaken) return { rows: await this.#read(GROUP, [group, after, limit]), readTo: 0 }
    const readTo = await this.lastSeq()
    return { rows: await this.#read(UNSHARED_GROUP, [group, after, limit]), readTo }
  }

  /** @param db a transaction, or the database */
  async nextShares(
    group: number,
    after: readonly string[],
    limit: number,
    db: Pick<Queryable, 'query' | 'queryOne'> = this.database,
  ): Promise<string[][]> {
    const shares: string[][] = []
    for (const [n, last] of after.entries()) {
      const found: string[] = []
      while (found.length < limit) {
        const from = found.at(-1) ?? (last === '' ? String(n) : last)
        const row = await db.queryOne<{ share: string }>(NEXT_SHARE, [group, from, String(n + 1)])
        if (row === null) break
        found.push(row.share)
      }
      shares.push(found)
    }
    return shares
  }

  async readShares(group: number, asks: readonly ShareAsk[]): Promise<Page> {
    const pages: Page[] = []
    for (const { share, limit, after, inHand } of asks)
      pages.push(await this.#read(SHARE, [group, share, after, JSON.stringify(inHand), limit]))
    return pages.flat()
  }

  async passShare(group: number, { share, after }: ShareAsk): Promise<number> {
    const row = await this.database.queryOne<{ place: number }>(PASS_SHARE, [group, share, after])
    return row === null ? 0 : Number(row.place)
  }

  async sharesOfKeys(group: number, keys: readonly string[]): Promise<{ key: string; share: string }[]> {
    const columns = JSON.stringify(keys.map(keyColumnOf))
    const rows = await this.database.query<{ key: string; share: string | null }>(this.firstOfKeys, [group, columns])
    return rows.flatMap(({ key, share }) => (share === null ? [] : [{ key: keyOf(key)!, share }]))
  }

  protected get firstOfKeys(): string {
    return FIRST_OF_KEYS
  }

  async takeTurns(group: number): Promise<void> {
    await this.database.execute('UPDATE heddle_group SET has_share = 1 WHERE id = $1 AND has_share = 0', [group])
  }

  /** The events of which some have a priority. */
  async urgentEvents(): Promise<string[]> {
    const rows = await this.database.query<{ event: string }>(
      'SELECT DISTINCT event FROM heddle_group WHERE has_share = 1',
    )
    return rows.map(({ event }) => event)
  }

  readKey(group: number, key: string, after: number, limit: number): Promise<Page> {
    return this.#read(KEY, [group, key, after, limit])
  }

  async #read(sql: string, params: (string | number)[]): Promise<Page> {
    for (;;) {
      const rows = await this.database.query<DeliveryRow>(sql, params)
      // Asked after the page: rows older than one of the page have their groups as well.
      if (!(await this.hasUnassigned())) return rows.map((row) => deliveryOf(row))
      await this.assign()
    }
  }

  // ── state at the start ────────────────────────────────────────────────────

  /** The last row number used. */
  async lastSeq(): Promise<number> {
    const row = await this.database.queryOne<{ seq: number }>(
      "SELECT seq FROM sqlite_sequence WHERE name = 'heddle_delivery'",
    )
    return Number(row?.seq ?? 0)
  }

  /**
   * Records that a process uses the store. If the previous process crashed, its rows in hand may be the cause: the first page of each
   * group, without rows behind dead letters or far behind others of their keys.
   * @param page maximum number of deliveries of a group in hand
   * @param ofKey maximum number of one key
   */
  noteStart(page: number, ofKey: number): Promise<void> {
    return ownTransaction(this.database, async (tx) => {
      if ((await tx.queryOne('SELECT 1 AS found FROM heddle_log WHERE name = $1', [IN_USE])) !== null) {
        for (const { id } of await tx.query<{ id: number }>(RECENT_GROUPS)) {
          const { rows } = await tx.execute<{ seq: number }>(RAISE_CRASHES, [id, page, ofKey - 1])
          const counted = rows.map(({ seq }) => Number(seq))
          const shares = await this.nextShares(id, ['', '', ''], SHARES_COUNTED, tx)
          await raiseOfShares(tx, 'sqlite', id, shares.flat(), counted, page)
        }
      } else await tx.execute('INSERT INTO heddle_log (name, value) VALUES ($1, 1)', [IN_USE])
    })
  }

  /** Records that the process ends in order: the remaining rows are not suspects. */
  async noteEnd(): Promise<void> {
    await this.database.execute('DELETE FROM heddle_log WHERE name = $1', [IN_USE])
  }

  async count(): Promise<number> {
    const row = await this.database.queryOne<{ count: number }>(COUNT)
    return Number(row!.count)
  }

  /** Due time of the first delayed row; infinite: none. */
  async firstDueMs(): Promise<number> {
    const row = await this.database.queryOne<{ due_ms: number | null }>(
      `SELECT min(due_ms) AS due_ms FROM heddle_delivery WHERE due_ms > 0 AND due_ms < ${LAST_PLACE}`,
    )
    return row?.due_ms == null ? Number.POSITIVE_INFINITY : Number(row.due_ms)
  }

  /** Moves the delays of this process's rows by the change of the clock, except dates and rows stored by the new clock. */
  async moveDue(jump: ClockJump): Promise<void> {
    const { ms, noted, known, sinceMs, untilMs } = jump
    // No row has the number 0: a server takes no empty list.
    const isOwn = `(${this.ofThisProcess(jump)} OR seq IN (${[0, ...noted].join()}))`
    const waiting = `due_ms > 0 AND due_ms % 2 = 0 AND ${isOwn}`
    const recent = await this.database.query<{ seq: number; envelope: string }>(
      `SELECT seq, envelope FROM heddle_delivery WHERE ${waiting} AND seq > $1`,
      [known],
    )
    const fresh = recent.filter(({ envelope }) => {
      const atMs = publishedMs(envelope)
      return atMs >= sinceMs && atMs <= untilMs
    })
    const exceptFresh = fresh.length === 0 ? '' : ` AND seq NOT IN (${fresh.map(({ seq }) => seq).join()})`
    await this.database.execute(
      // A lifetime gets no shorter: the clock may be set ahead again after the row is gone.
      `UPDATE heddle_delivery SET due_ms = due_ms + $1, expires_ms = CASE expires_ms WHEN 0 THEN 0 ELSE expires_ms + $2 END
       WHERE ${waiting}${exceptFresh}`,
      [ms, Math.max(0, ms)],
    )
  }

  /** A condition for rows of this process alone. */
  protected ofThisProcess({ after }: ClockJump): string {
    return `seq > ${after}`
  }

  groups(): Promise<StoredGroup[]> {
    return this.storedGroups('FALSE', 'TRUE')
  }

  /** @param isElsewhere,where conditions for rows of `heddle_group`: another process has the group, it is shared */
  protected async storedGroups(isElsewhere: string, where: string): Promise<StoredGroup[]> {
    const rows = await this.database.query<{
      id: number
      event: string
      grp: string
      kind: GroupKind
      seen_ms: number
      is_elsewhere: boolean | number
    }>(`SELECT id, event, grp, kind, seen_ms, ${isElsewhere} AS is_elsewhere FROM heddle_group WHERE ${where}`)
    return rows.map(({ id, event, grp, kind, seen_ms, is_elsewhere }) => ({
      id: Number(id),
      event,
      group: grp,
      kind,
      seenMs: Number(seen_ms),
      isElsewhere: Boolean(is_elsewhere),
    }))
  }

  /** By event: number of groups of other processes alone. A file has one process. */
  async groupsOfOthers(): Promise<Map<string, number>> {
    return new Map()
  }

  /** The blocked keys of a group. */
  async parkedKeys(group: number): Promise<ParkedKey[]> {
    const rows = await this.database.query<{ key: string; dead_letter: string; place: number }>(
      'SELECT p.key, p.dead_letter, d.place FROM heddle_parked p JOIN heddle_dead d ON d.id = p.dead_letter WHERE p.grp = $1',
      [group],
    )
    return rows.flatMap(({ key, dead_letter, place }) => {
      try {
        return [{ key: keyOf(key)!, deadLetter: dead_letter, place: Number(place) }]
      } catch {
        // A foreign row: it blocks no key of ours.
        return []
      }
    })
  }

  async countOfKey(group: number, key: string): Promise<number> {
    const row = await this.database.queryOne<{ count: number }>(
      'SELECT count(*) AS count FROM heddle_delivery WHERE grp = $1 AND key = $2 AND due_ms = 0',
      [group, keyColumnOf(key)],
    )
    return Number(row!.count)
  }

  /** Makes a dead letter a row again, at its place, or at the end if it has none. */
  async moveIn(tx: Queryable, deadLetter: string, group: number, frame: EventFrame, nowMs: number): Promise<MovedRow> {
    const dead = await tx.queryOne<{ place: number }>('SELECT place FROM heddle_dead WHERE id = $1', [deadLetter])
    const { rows } = await tx.execute<{ seq: number }>(
      `INSERT INTO heddle_delivery (place, grp, thread, event_id, event, envelope, payload, key) VALUES ($1, $2, 0, $3, $4, $5, $6, $7) RETURNING seq`,
      [dead!.place || null, group, frame.id, frame.event, envelopeOf(frame), frame.payload, keyColumnOf(frame.key)],
    )
    const seq = Number(rows[0]!.seq)
    await this.replayBegins(tx, deadLetter, seq, nowMs)
    return { seq, place: Number(dead!.place || seq) }
  }

  /** Unblocks the key of the dead letter, now the row `seq`. */
  protected async replayBegins(tx: Queryable, deadLetter: string, seq: number, nowMs: number): Promise<void> {
    await tx.execute('DELETE FROM heddle_parked WHERE dead_letter = $1', [deadLetter])
    await tx.execute("UPDATE heddle_dead SET replay = 'running', replay_seq = $1, replayed_ms = $2 WHERE id = $3", [
      seq,
      nowMs,
      deadLetter,
    ])
  }

  /** Dead letters with a running replay. */
  async replays(): Promise<{ seq: number; sinceMs: number }[]> {
    const rows = await this.database.query<{ replay_seq: number; replayed_ms: number }>(
      "SELECT replay_seq, replayed_ms FROM heddle_dead WHERE replay = 'running'",
    )
    return rows.map(({ replay_seq, replayed_ms }) => ({ seq: Number(replay_seq), sinceMs: Number(replayed_ms) }))
  }

  /** Number of rows of each of some groups. */
  async countOf(groups: readonly number[]): Promise<Map<number, number>> {
    const rows = await this.database.query<{ grp: number; count: number }>(
      `SELECT grp, count(*) AS count FROM heddle_delivery WHERE due_ms = 0 AND grp IN (${groups.join(', ')}) GROUP BY grp`,
    )
    return new Map(rows.map(({ grp, count }) => [Number(grp), Number(count)]))
  }

  /** True while rows wait for the groups to be known. Asks only if some may: a query of the page's thread costs as much as ten rows. */
  async hasUnassigned(): Promise<boolean> {
    const { laterInserts, isLaterOpen } = this.#memory
    if (laterInserts === this.#assigned && !isLaterOpen) return false
    const isFound = (await this.database.queryOne(HAS_UNASSIGNED)) !== null
    if (!isFound && !isLaterOpen) this.#assigned = laterInserts
    return isFound
  }

  /** Gives rows inserted before the groups were known to the groups, at their places. */
  async assign(): Promise<void> {
    await this.#groupsAreStored()
    await ownTransaction(this.database, (tx) => this.#assign(tx))
    this.onAssigned()
  }

  /** Gives events for a broker to the groups. */
  async takeBackRelayed(): Promise<void> {
    for (const which of ['due_ms = 0', 'due_ms > 0'])
      await this.database.execute(`UPDATE heddle_delivery SET grp = ${ALL_GROUPS} WHERE grp = ${BROKER} AND ${which}`)
  }

  async #assign(tx: Queryable): Promise<void> {
    const columns = 'thread, event_id, event, envelope, payload, key, due_ms, expires_ms'
    const from = columns
      .split(', ')
      .map((column) => `d.${column}`)
      .join(', ')
    await tx.execute(deleteReplaced(`d.grp = ${ALL_GROUPS}`))
    await tx.execute(
      `INSERT INTO heddle_delivery (place, grp, ${columns}, uniq, share) SELECT d.seq, g.id, ${from}, ${UNIQUE_OF_GROUP}, ${shareSql('sqlite', 'd.share', 'g')} FROM heddle_delivery AS d
       CROSS JOIN heddle_group AS g ON g.event = d.event WHERE d.grp = ${ALL_GROUPS} ORDER BY d.seq ${IF_ALONE}`,
    )
    await tx.execute(`DELETE FROM heddle_delivery WHERE grp = ${ALL_GROUPS}`)
  }
}

/** Time of publication, milliseconds since the epoch; 0: an invalid envelope. */
export function publishedMs(envelope: string): number {
  try {
    return timestampOf(envelope)
  } catch {
    return 0
  }
}
