// Reads the tables of the event store on PostgreSQL: the rows of the slots this process owns.
import type { Queryable, Row } from '../../contracts/db.ts'
import { ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import { BROKER } from '../../runtime/event-store/delivery-rows.ts'
import { envelopeOf, keyColumnOf, keyIn, shareSql } from '../../runtime/event-store/event-columns.ts'
import { arrayOf, deleteRowsOf } from '../../runtime/event-store/server-changes.ts'
import { unassignedOf } from '../../runtime/event-store/server-rows.ts'
import { IS_DRAWING, MEMBER_THREADS, SLOTS, slotOf } from '../../runtime/event-store/server-tables.ts'
import { IS_READY_OF_SHARE } from '../../runtime/event-store/store-tables.ts'
import { deleteReplaced, IF_ALONE, UNIQUE_OF_GROUP } from '../../runtime/event-store/unique-rows.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { StoreMemory } from '../../transport/memory/store-memory.ts'
import type { GroupKind } from '../../transport/store-changes.ts'
import { HORIZON, type Horizon } from './horizon.ts'
import { IS_HEAD, SHARE_WINDOW } from './share-rows.ts'
import type { OwnedSlot, Slots } from './slots.ts'
import { type ClockJump, type MovedRow, SqlStore, type StoredGroup } from './sql-store.ts'
import type { GroupPage, Page } from './store.ts'
import { type DeliveryRow, deliveryOf, TRIED } from './stored-rows.ts'
import type { ShareAsk } from './turns.ts'

/** Rows that waited for the groups of a member, once the groups are stored or the member is gone. */
const ASSIGNABLE = `grp < ${BROKER} AND NOT EXISTS (SELECT 1 FROM heddle_member AS m WHERE m.id = ${BROKER} - grp AND m.subscriptions < place)`
const DELETE_REPLACED = deleteReplaced(ASSIGNABLE.replaceAll('grp', 'd.grp').replace('place', 'd.place'))
const HAS_ASSIGNABLE = `EXISTS (SELECT 1 FROM heddle_delivery WHERE ${ASSIGNABLE})`
const ORDER = 'coalesce(place, seq)'
/** True if an older row of the key waits for its groups. Part of the page's query: another process may assign it at any moment. */
const WAITS = `CASE WHEN key IS NOT NULL AND EXISTS (SELECT 1 FROM heddle_delivery WHERE grp < ${BROKER}) THEN EXISTS (
  SELECT 1 FROM heddle_delivery AS o WHERE o.grp < ${BROKER} AND o.due_ms = 0 AND o.event = heddle_delivery.event AND o.key = heddle_delivery.key
    AND o.seq < coalesce(heddle_delivery.place, heddle_delivery.seq)) END`
const COLUMNS = `seq, place, slot, thread, event_id AS id, event, envelope, payload, key, ${TRIED.postgres} AS tried,
  ${WAITS} AS has_older`
/** Rows read beyond the limit: the first ones of a key are in hand, or their outcomes are not committed. */
const KEY_IN_HAND = 64
const KEY = `SELECT ${COLUMNS}, ${HAS_ASSIGNABLE} AS has_assignable FROM heddle_delivery
  WHERE grp = $1 AND key = $2 AND ${ORDER} > $3 AND due_ms = 0 AND slot = ANY($5::int[]) ORDER BY ${ORDER} LIMIT $4`
const SHARES = `SELECT d.* FROM json_to_recordset($2::json) AS s (share text, "limit" integer, after bigint, in_hand bigint[]) CROSS JOIN LATERAL (
  SELECT ${COLUMNS} FROM (SELECT * FROM heddle_delivery WHERE grp = $1 AND share = s.share AND ${IS_READY_OF_SHARE} AND ${ORDER} > s.after
      AND seq <> ALL (s.in_hand) ORDER BY ${ORDER} LIMIT ${SHARE_WINDOW}) AS heddle_delivery
    WHERE slot = ANY($3::int[]) AND ${IS_HEAD} ORDER BY ${ORDER} LIMIT s."limit") AS d`
const FIRST_OF_KEYS = `SELECT k.value AS key, (SELECT coalesce(share, '') FROM heddle_delivery WHERE grp = $1 AND key = k.value AND due_ms = 0 ORDER BY ${ORDER} LIMIT 1) AS share
  FROM json_array_elements_text($2::json) AS k (value)`
/** As in `SqlStore`, for all priorities together. */
const NEXT_SHARES = `SELECT p.n, f.share FROM (VALUES (0, $2::text, '1'), (1, $3::text, '2'), (2, $4::text, '3')) AS p (n, after, until) CROSS JOIN LATERAL (
  WITH RECURSIVE s (share) AS (
    SELECT min(d.share) FROM heddle_delivery AS d WHERE d.grp = $1 AND d.share > p.after AND d.share < p.until AND d.${IS_READY_OF_SHARE}
    UNION ALL SELECT (SELECT min(d.share) FROM heddle_delivery AS d WHERE d.grp = $1 AND d.share > s.share AND d.share < p.until AND d.${IS_READY_OF_SHARE})
      FROM s WHERE s.share IS NOT NULL)
  SELECT share FROM s WHERE share IS NOT NULL LIMIT $5) AS f`
/** Rows behind the cursor that are not in hand, and the first of those that became visible late. */
const BEHIND = 'SELECT seq, place, key FROM heddle_delivery WHERE seq = ANY($1::bigint[]) AND due_ms = 0'
const LATE = `SELECT ${COLUMNS} FROM heddle_delivery WHERE seq = ANY($1::bigint[]) AND due_ms = 0 ORDER BY ${ORDER} LIMIT $2`
const DELIVERY = 'thread, event_id, event, envelope, payload, key, due_ms, expires_ms, crashes'

interface ServerRow extends DeliveryRow {
  slot: number
  has_older: boolean | null
}
/** Slot number that marks the last line of a page, which is no row: see PAGE. */
const NO_SLOT = -1

/** A group new to this process. */
export interface NewGroup {
  readonly event: string
  readonly name: string
  readonly kind: GroupKind
  readonly seenMs: number
}

/** Where turns are taken, of a key only the first row is read here, if it has no share. */
const OF_TURNS = ` AND share IS NULL AND ${IS_HEAD}`

/**
 * The rows of some slots, or of all, in one order: owners of other slots read the same part of the index. The last line shows the state
 * at the same moment: the numbers (as `seq`, `id` and `event`), the unsettled rows behind the cursor, new ones and new ones at an old
 * place (`envelope`), and whether rows wait to be assigned (`payload`). With `due_ms + 0` the index of the order, in which a group may have
 * any number of rows, cannot be chosen for rows at an old place: a plan made for an empty table would read all of them.
 */
const pageOf = (condition: string): string => `(SELECT ${COLUMNS} FROM heddle_delivery
    WHERE grp = $1 AND ${ORDER} > $2 AND due_ms = 0 AND ($6::boolean OR slot = ANY($5::int[]))${condition}
    ORDER BY ${ORDER} LIMIT $3)
  UNION ALL SELECT ${HORIZON.last}, NULL, ${NO_SLOT}, 0, ${HORIZON.oldest}, ${HORIZON.next},
    coalesce((SELECT string_agg(CAST(seq AS text), ',') FROM (
      SELECT seq FROM heddle_delivery
        WHERE grp = $1 AND slot = ANY($5::int[]) AND ${ORDER} > $4 AND ${ORDER} <= $2 AND due_ms = 0${condition}
          AND (${WAITS}) IS NOT TRUE
      UNION ALL SELECT seq FROM heddle_delivery
        WHERE grp = $1 AND slot = ANY($5::int[]) AND seq > $4 AND place IS NOT NULL AND place <= $4 AND place <= $2 AND due_ms + 0 = 0${condition}) AS behind), ''),
    CASE WHEN ${HAS_ASSIGNABLE} THEN 'some' ELSE '' END, NULL, NULL, NULL FROM ${HORIZON.from}`
const PAGE = pageOf('')
const PAGE_OF_TURNS = pageOf(OF_TURNS)

export interface ServerStoreParts {
  database: () => StoreDatabase
  memory: StoreMemory
  /** Resolves when the groups of all subscribers of this process are stored. */
  groupsAreStored: () => Promise<void>
  slots: () => Slots
  horizon: Horizon
  /** Number of this member. */
  member: () => number
  isInHand: (seq: number) => boolean
  /** Called for a row that became visible after its group was read past it. */
  onLate: (group: number, place: number, key: string | null) => void
  /** False while rows of the key are skipped. */
  isOpen: (group: number, key: string | null) => boolean
}

export class ServerStore extends SqlStore {
  readonly #parts: ServerStoreParts
  /** By group: the place below which all late rows have appeared. */
  readonly #examined = new Map<number, number>()
  /** Rows that left the hand while a page was being read. */
  readonly #left = new Set<number>()
  /** The current read of a page, or search for late rows. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(parts: ServerStoreParts) {
    super(parts.database, parts.memory, parts.groupsAreStored)
    this.#parts = parts
  }

  #member(): number {
    return this.#parts.member()
  }

  /** The outcomes of these rows are committed. */
  rowsLeft(seqs: readonly number[]): void {
    for (const seq of seqs) this.#left.add(seq)
  }

  /** Runs functions one after another. */
  inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(run)
    this.#turn = turn.catch(() => {})
    return turn
  }

  /** The page begins with late rows: a publisher may have committed a late row and then the next of its key. */
  override readGroup(group: number, after: number, limit: number, areTurnsTaken: boolean): Promise<GroupPage> {
    return this.inTurn(async () => {
      const slots = this.#readable(group)
      if (slots.length === 0) return { rows: [], readTo: 0 }
      const numbers = slots.map(({ slot }) => slot)
      for (;;) {
        const examined = this.#examined.get(group) ?? 0
        this.#left.clear()
        this.#parts.horizon.begin()
        const params = [group, after, limit, examined, `{${numbers.join(',')}}`, slots.length === SLOTS]
        const rows = await this.database.query<ServerRow & Row>(areTurnsTaken ? PAGE_OF_TURNS : PAGE, params)
        const { seq, id, event, envelope: behind, payload: assignable } = rows.pop()!
        if (assignable !== '') {
          // Rows of the same publisher stored before a row of this page are older.
          await this.assign()
          continue
        }
        const page = [...(await this.#lateOf(group, behind, limit)), ...rows].slice(0, limit)
        const decided = this.#parts.horizon.seen({ last: seq, oldest: id, next: event })
        this.#examined.set(group, decided)
        return { rows: await this.#pageOf(slots, page), readTo: decided }
      }
    })
  }

  /** Reads from the first row of the key: rows in hand, and rows that have left it, are skipped. */
  override readKey(group: number, key: string, after: number, limit: number): Promise<Page> {
    return this.inTurn(async () => {
      const slots = this.#readable(group)
      if (slots.length === 0) return []
      const { isInHand } = this.#parts
      const list = `{${slots.map(({ slot }) => slot).join(',')}}`
      this.#left.clear()
      const isKnown = (seq: number): boolean => isInHand(seq) || this.#left.has(seq)
      const most = limit + KEY_IN_HAND
      const fresh: ServerRow[] = []
      // Its first row may have become visible since the read.
      let from = 0
      // Any number of rows may be settling. A page without the rest of the key would end its reading.
      for (let found = most; found === most && fresh.length < limit; ) {
        const rows = await this.#keyRows([group, key, from, most, list])
        fresh.push(...rows.filter(({ seq, place }) => Number(place ?? seq) > after || !isKnown(Number(seq))))
        found = rows.length
        const last = rows.at(-1)
        if (last !== undefined) from = Number(last.place ?? last.seq)
      }
      return this.#pageOf(slots, fresh.slice(0, limit))
    })
  }

  override async nextShares(
    group: number,
    after: readonly string[],
    limit: number,
    db: Pick<Queryable, 'query'> = this.database,
  ): Promise<string[][]> {
    const params = [group, ...after.map((last, n) => (last === '' ? String(n) : last)), limit]
    const rows = await db.query<{ n: number; share: string }>(NEXT_SHARES, params)
    return after.map((_, n) => rows.flatMap((row) => (Number(row.n) === n ? [row.share] : [])))
  }

  protected override get firstOfKeys(): string {
    return FIRST_OF_KEYS
  }

  override readShares(group: number, asks: readonly ShareAsk[]): Promise<Page> {
    return this.inTurn(async () => {
      const slots = this.#readable(group)
      if (slots.length === 0) return []
      const list = `{${slots.map(({ slot }) => slot).join(',')}}`
      this.#left.clear()
      return this.#pageOf(
        slots,
        await this.database.query<ServerRow & Row>(SHARES, [
          group,
          JSON.stringify(asks.map(({ inHand, ...ask }) => ({ ...ask, in_hand: inHand }))),
          list,
        ]),
      )
    })
  }

  #readable(group: number): OwnedSlot[] {
    return this.#parts.slots().readable(group)
  }

  /**
   * Rows with a place of their own are reported instead, since rows of their keys may have waited for them, and so are rows of keys that are read by
   * their key.
   * @param behind numbers of rows behind the cursor, separated by commas: most of them are in hand
   */
  async #lateOf(group: number, behind: string, limit: number): Promise<ServerRow[]> {
    if (behind === '') return []
    const { isInHand, isOpen, onLate } = this.#parts
    const seqs = behind
      .split(',')
      .map(Number)
      .filter((seq) => !isInHand(seq) && !this.#left.has(seq))
    if (seqs.length === 0) return []
    const rows = await this.database.query<{ seq: number; place: number | null; key: string | null }>(BEHIND, [
      arrayOf(seqs),
    ])
    const late: number[] = []
    for (const { seq, place, key } of rows) {
      if (place === null && isOpen(group, keyIn(key))) late.push(seq)
      else onLate(group, Number(place ?? seq), keyIn(key))
    }
    return late.length === 0 ? [] : await this.database.query<ServerRow & Row>(LATE, [arrayOf(late), limit])
  }

  async #keyRows(params: (string | number)[]): Promise<ServerRow[]> {
    for (;;) {
      const rows = await this.database.query<ServerRow & Row>(KEY, params)
      if (rows[0]?.has_assignable !== true) return rows
      await this.assign()
    }
  }

  async #pageOf(readable: readonly OwnedSlot[], rows: readonly ServerRow[]): Promise<Page> {
    const slots = new Map(readable.map((owned) => [owned.slot, owned]))
    const since = rows.some(({ place }) => place !== null) ? await this.#replaysSince() : null
    return rows.map((row) =>
      deliveryOf(row, slots.get(Number(row.slot)), since?.get(Number(row.seq)), row.has_older === true),
    )
  }

  async #replaysSince(): Promise<Map<number, number>> {
    return new Map((await this.replays()).map(({ seq, sinceMs }) => [seq, sinceMs]))
  }

  // ── groups ────────────────────────────────────────────────────────────────

  override groups(): Promise<StoredGroup[]> {
    const others = `SELECT 1 FROM heddle_member_group AS m WHERE m.grp = heddle_group.id AND m.member <> ${this.#member()}`
    return this.storedGroups(`EXISTS (${others})`, 'member = 0')
  }

  /** The broadcasts and temporary subscribers of the process. */
  override async groupsOfOthers(): Promise<Map<string, number>> {
    const rows = await this.database.query<{ event: string; count: number }>(
      'SELECT event, count(*) AS count FROM heddle_group WHERE member <> 0 AND member <> $1 GROUP BY event',
      [this.#member()],
    )
    return new Map(rows.map(({ event, count }) => [event, Number(count)]))
  }

  /** Stores groups of this process: after the commit, published events make rows for them. @returns their numbers */
  join(groups: readonly NewGroup[]): Promise<number[]> {
    return ownTransaction(this.database, async (tx) => {
      const ids: number[] = []
      for (const { event, name, kind, seenMs } of groups) {
        const isShared = kind === 'group'
        const { rows } = await tx.execute<{ id: number }>(
          `INSERT INTO heddle_group (event, grp, kind, member, seen_ms) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (event, grp, kind, member) DO UPDATE SET seen_ms = excluded.seen_ms RETURNING id`,
          [event, name, kind, isShared ? 0 : this.#member(), seenMs],
        )
        const id = Number(rows[0]!.id)
        ids.push(id)
        if (isShared) await this.#share(tx, id)
        else
          await tx.execute(
            'INSERT INTO heddle_slot (grp, slot, member, epoch) VALUES ($1, 0, $2, 1) ON CONFLICT DO NOTHING',
            [id, this.#member()],
          )
      }
      await this.#changed(tx)
      return ids
    })
  }

  /** Stores the number of later subscriptions with stored groups: rows waiting for them may be assigned. */
  async subscriptionsStored(subscriptions: number): Promise<void> {
    await this.database.execute('UPDATE heddle_member SET subscriptions = greatest(subscriptions, $1) WHERE id = $2', [
      subscriptions,
      this.#member(),
    ])
  }

  /** Takes part in sending rows to the message broker. */
  joinBroker(): Promise<void> {
    return ownTransaction(this.database, async (tx) => {
      await this.#share(tx, BROKER)
      await this.#changed(tx)
    })
  }

  async #share(tx: Queryable, group: number): Promise<void> {
    await tx.execute(
      `INSERT INTO heddle_slot (grp, slot) SELECT $1::int, generate_series(0, ${SLOTS - 1}) ON CONFLICT DO NOTHING`,
      [group],
    )
    await tx.execute('INSERT INTO heddle_member_group (member, grp) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
      this.#member(),
      group,
    ])
  }

  /** Removes groups from this process: others may take their slots. */
  leave(groups: readonly number[]): Promise<void> {
    return ownTransaction(this.database, async (tx) => {
      await tx.execute('DELETE FROM heddle_member_group WHERE member = $1 AND grp = ANY($2::int[])', [
        this.#member(),
        `{${groups.join(',')}}`,
      ])
      await this.#changed(tx)
    })
  }

  async #changed(tx: Queryable): Promise<void> {
    await tx.execute('UPDATE heddle_member SET groups = groups + 1 WHERE id = $1', [this.#member()])
  }

  // ── members ───────────────────────────────────────────────────────────────

  /**
   * Removes a member, with the groups of this member alone and their rows.
   * @param until its lease as last read; null: this member itself, which releases its slots
   * @returns false if it was renewed meanwhile, or removed by another member
   */
  removeMember(member: number, until: string | null): Promise<boolean> {
    return ownTransaction(this.database, async (tx) => {
      if (until === null) await tx.execute('UPDATE heddle_slot SET member = NULL WHERE member = $1', [member])
      const { rowCount } = await tx.execute(
        'DELETE FROM heddle_member WHERE id = $1 AND ($2::text IS NULL OR CAST(until AS text) = $2::text)',
        [member, until],
      )
      if (rowCount === 0) return false
      await tx.execute('DELETE FROM heddle_member_group WHERE member = $1', [member])
      const { rows } = await tx.execute<{ id: number }>('DELETE FROM heddle_group WHERE member = $1 RETURNING id', [
        member,
      ])
      if (rows.length > 0)
        await deleteRowsOf(
          tx,
          rows.map(({ id }) => Number(id)),
        )
      return true
    })
  }

  /** Deletes rows of deleted groups, stored by publishers that still saw the group. Skips from group to group by the indexes. */
  async deleteOrphans(): Promise<void> {
    const rows = await this.database.query<{ grp: number }>(
      `WITH RECURSIVE found (grp) AS (
         (SELECT min(grp) FROM heddle_delivery WHERE due_ms = 0 AND grp > 0)
         UNION ALL SELECT (SELECT min(grp) FROM heddle_delivery WHERE due_ms = 0 AND grp > found.grp) FROM found WHERE found.grp IS NOT NULL),
       later (grp) AS (
         (SELECT min(grp) FROM heddle_delivery WHERE due_ms > 0 AND grp > 0)
         UNION ALL SELECT (SELECT min(grp) FROM heddle_delivery WHERE due_ms > 0 AND grp > later.grp) FROM later WHERE later.grp IS NOT NULL)
       SELECT every.grp FROM (SELECT grp FROM found UNION SELECT grp FROM later) AS every WHERE every.grp IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM heddle_group AS g WHERE g.id = every.grp)`,
    )
    if (rows.length === 0) return
    const groups = `{${rows.map(({ grp }) => grp).join(',')}}`
    await this.database.execute('DELETE FROM heddle_delivery WHERE grp = ANY($1::int[])', [groups])
  }

  // ── differences from SQLite ───────────────────────────────────────────────

  override async lastSeq(): Promise<number> {
    const row = await this.database.queryOne<{ last: number }>(`SELECT ${HORIZON.last} AS last`)
    return Number(row!.last)
  }

  /** In the slots owned by this process. */
  override async firstDueMs(): Promise<number> {
    const row = await this.database.queryOne<{ due_ms: number | null }>(
      `SELECT min(d.due_ms) AS due_ms FROM heddle_slot AS s CROSS JOIN LATERAL (
         SELECT due_ms FROM heddle_delivery WHERE grp = s.grp AND slot = s.slot AND due_ms > 0 ORDER BY due_ms LIMIT 1) AS d
       WHERE s.member = $1`,
      [this.#member()],
    )
    return row?.due_ms == null ? Number.POSITIVE_INFINITY : Number(row.due_ms)
  }

  protected override ofThisProcess(_: ClockJump): string {
    const first = this.#member() * MEMBER_THREADS
    return `thread >= ${first} AND thread < ${first + MEMBER_THREADS}`
  }

  override async moveIn(
    tx: Queryable,
    deadLetter: string,
    group: number,
    frame: EventFrame,
    nowMs: number,
  ): Promise<MovedRow> {
    const dead = await tx.queryOne<{ place: number }>('SELECT place FROM heddle_dead WHERE id = $1', [deadLetter])
    const own = await tx.queryOne<{ member: number }>('SELECT member FROM heddle_group WHERE id = $1', [group])
    const key = keyColumnOf(frame.key)
    const slot = Number(own?.member ?? 0) > 0 ? '0' : slotOf('$7::text')
    const { rows } = await tx.execute<{ seq: number; place: number }>(
      `INSERT INTO heddle_delivery (seq, place, grp, slot, thread, event_id, event, envelope, payload, key)
       SELECT n.seq, coalesce($1::bigint, n.seq), $2::int, ${slot}, 0, $3, $4, $5, $6, $7::text FROM (SELECT nextval('heddle_delivery_seq') AS seq) AS n WHERE ${IS_DRAWING}
       RETURNING seq, place`,
      [Number(dead!.place) || null, group, frame.id, frame.event, envelopeOf(frame), frame.payload, key],
    )
    const [seq, place] = [Number(rows[0]!.seq), Number(rows[0]!.place)]
    await this.replayBegins(tx, deadLetter, seq, nowMs)
    return { seq, place }
  }

  /** Returns the ones of these dead letters that still block a key. */
  async stillParked(deadLetters: readonly string[]): Promise<Set<string>> {
    const rows = await this.database.query<{ dead_letter: string }>(
      'SELECT dead_letter FROM heddle_parked WHERE dead_letter IN (SELECT json_array_elements_text($1::json))',
      [JSON.stringify(deadLetters)],
    )
    return new Set(rows.map(({ dead_letter }) => dead_letter))
  }

  /** Does nothing while other processes use the broker. */
  override async takeBackRelayed(): Promise<void> {
    for (const which of ['due_ms = 0', 'due_ms > 0'])
      await this.database.execute(
        `UPDATE heddle_delivery SET grp = $1, place = 0 WHERE grp = ${BROKER} AND ${which}
         AND NOT EXISTS (SELECT 1 FROM heddle_member_group WHERE grp = ${BROKER} AND member <> $2)`,
        [unassignedOf(this.#member()), this.#member()],
      )
  }

  override async hasUnassigned(): Promise<boolean> {
    return (await this.database.queryOne(`SELECT 1 AS found FROM heddle_delivery WHERE ${ASSIGNABLE} LIMIT 1`)) !== null
  }

  /** Gives rows stored before the groups of their members to those groups, at their places. */
  override async assign(): Promise<void> {
    const from = DELIVERY.split(', ')
      .map((column) => `d.${column}`)
      .join(', ')
    await this.database.execute(DELETE_REPLACED)
    await this.database.execute(
      `WITH moved AS (DELETE FROM heddle_delivery WHERE ${ASSIGNABLE} AND ${IS_DRAWING} RETURNING *)
       INSERT INTO heddle_delivery (place, grp, slot, ${DELIVERY}, uniq, share)
       SELECT d.seq, g.id, CASE WHEN g.member > 0 THEN 0 ELSE d.slot END, ${from}, ${UNIQUE_OF_GROUP}, ${shareSql('postgres', 'd.share', 'g')}
       FROM moved AS d JOIN heddle_group AS g ON g.event = d.event ORDER BY d.seq ${IF_ALONE}`,
    )
  }
}
