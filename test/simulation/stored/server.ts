/**
 * A server that several processes share: the statements for PostgreSQL are run by SQLite, each at once, but for what a server makes of time. An INSERT of
 * events has its numbers in the order before it is seen, statements of one thread overtake each other, and what a process has sent is done also
 * when it dies. Of two transactions one waits for the other, as if they were serializable.
 */
import Database from 'better-sqlite3'
import type { Queryable, SqlValue } from '../../../src/contracts/db.ts'
import { DbError } from '../../../src/core/errors/catalogue.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import { DRAWING_TRANSACTIONS } from '../../../src/runtime/event-store/server-tables.ts'
import type { Draw } from '../draw.ts'
import { Finding } from '../oracle.ts'
import type { DatabaseFaults, Holder, SimulatedStore } from './database.ts'
import { named, type Translated, translated } from './statements.ts'

/** What the server has done, in this order: a real one is held against it. */
export type Recorded =
  | {
      what: 'statement'
      sql: string
      params: Params
      outcome: Outcome | null
      numbers: number[]
      /** Of the rows with these numbers: chance where they have no key. */
      slots: { seq: number; slot: number }[]
      nowMs: number
    }
  | { what: 'BEGIN' | 'COMMIT' | 'ROLLBACK' }
  /** An INSERT of events, or what gives rows to their groups: its rows are those of now, and seen later. */
  | {
      what: 'begun'
      sql: string
      params: Params
      numbers: number[]
      rows: SqlValue[][]
      columns: string[]
      nowMs: number
    }
  /** @param deleted numbers of the rows that were moved, with their new rows */
  | { what: 'seen'; columns: string[]; deleted: number[]; inserted: SqlValue[][] }

interface World {
  /** Told of all that the server does. */
  record?: (recorded: Recorded) => void
  draw: Draw
  faults: DatabaseFaults
  isHealed: () => boolean
  nowMs: () => number
  /** Something of the world happens then, whoever lives. */
  later: (ms: number, run: () => void) => void
  tell: (line: () => string) => void
  /** The simulation itself is broken, or a rule is. */
  failed: (error: unknown) => void
  /** The number of a process among those that share the server, and its name. */
  memberOf: (owner: object) => { member: number; name: string }
}

export interface Outcome {
  rowCount: number
  rows: unknown[]
}

interface Settle {
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

interface Listener {
  readonly holder: Holder
  readonly told: (payload: string) => void
}

/** A transaction from its first statement on; it may have drawn numbers long before it is seen. */
interface Transaction {
  readonly holder: Holder
  readonly xid: number
  readonly drawn: number[]
  /** It has drawn some, so it holds the lock of those who do. */
  isDrawing: boolean
}

export type Params = readonly SqlValue[]
type Row = Record<string, SqlValue>

/** The first rows of a share. */
interface ShareAsk {
  share: string
  limit: number
  after: number
  in_hand: number[]
}

/** The statements that SQLite has no words for. Whatever else begins like one of them is refused. */
const INSERT =
  /^INSERT INTO heddle_delivery \(([\w, ]+)\)\s+SELECT (.*?)\s+FROM (unnest\(.*\) WITH ORDINALITY AS e \([\w, ]+\)|\(SELECT 1 AS n, [^()]+\) AS e)(.*?)(?:\s+WHERE (\(SELECT pg_current_xact_id\(\)\) IS NOT NULL))? ORDER BY e\.n$/s
const ASSIGN =
  /^WITH moved AS \(DELETE FROM heddle_delivery WHERE (.*?) RETURNING \*\)\s+INSERT INTO heddle_delivery \(([\w, ]+)\)\s+SELECT (.*?)\s+FROM moved AS d(.*?) ORDER BY d\.seq(?: ON CONFLICT \(uniq, \(.*?\)\) WHERE uniq IS NOT NULL DO NOTHING)$/s
const UNIQUE =
  /^INSERT INTO heddle_delivery \(([\w, ]+)\) SELECT (.*?)(\s+FROM heddle_group AS g WHERE .*?)? (?:AND|WHERE) \(SELECT pg_current_xact_id\(\)\) IS NOT NULL (ON CONFLICT \(uniq, .*? RETURNING event_id, due_ms)$/s
const DELETE_HELD =
  /^WITH held AS \((SELECT s\.grp, s\.slot FROM heddle_slot .*?)\),\s+gone AS \(DELETE FROM heddle_delivery AS d USING held WHERE d\.grp = held\.grp AND d\.slot = held\.slot AND d\.seq = ANY\(\$5::bigint\[\]\)\)\s+SELECT grp, slot FROM held$/s
const TAKE =
  /^WITH free AS \(\s*(SELECT s\.grp, s\.slot, s\.member FROM heddle_slot AS s .*? FOR UPDATE OF s)\)\s+UPDATE heddle_slot AS s SET member = \$1, epoch = s\.epoch \+ 1 FROM free\s+WHERE s\.grp = free\.grp AND s\.slot = free\.slot AND EXISTS \(SELECT 1 FROM heddle_member WHERE id = \$1\)\s+RETURNING s\.grp, s\.slot, s\.epoch, free\.member$/s
const NOTE =
  /^UPDATE heddle_delivery AS d SET attempt = n\.attempt, deaths = n\.deaths, error = n\.error, begun = CAST\(n\."isBegun" AS integer\),\s+retry_ms = n\."retryMs", due_ms = n\."dueMs" FROM json_to_recordset\(\$1::json\)\s+AS n \([\w", ]+\) WHERE d\.seq = n\.seq AND d\.attempt <= n\.attempt$/s
const PROMOTE =
  /^WITH due AS \(DELETE FROM heddle_delivery WHERE seq = ANY\(\$1::bigint\[\]\) AND due_ms > 0 AND due_ms <= \$2 AND \(SELECT pg_current_xact_id\(\)\) IS NOT NULL RETURNING \*\),\s+numbered AS \(SELECT nextval\('heddle_delivery_seq'\) AS new_seq, sorted\.\* FROM \(SELECT \* FROM due ORDER BY due_ms, seq\) AS sorted\),\s+moved AS \(INSERT INTO heddle_delivery \(seq, place, ([\w, ]+)\)\s+SELECT new_seq, CASE WHEN place IS NOT NULL THEN new_seq END, [\w, ]+ FROM numbered\),\s+replays AS \(UPDATE heddle_dead SET replay_seq = new_seq FROM numbered\s+WHERE numbered\.place IS NOT NULL AND replay_seq = numbered\.seq AND replay = 'running'\)\s+SELECT DISTINCT grp FROM numbered$/s
const NEXT_SHARES =
  /^SELECT p\.n, f\.share FROM \(VALUES \(0, \$2::text, '1'\), \(1, \$3::text, '2'\), \(2, \$4::text, '3'\)\) AS p \(n, after, until\) CROSS JOIN LATERAL \((.*)\) AS f$/s
const READ_SHARES =
  /^SELECT d\.\* FROM json_to_recordset\(\$2::json\) AS s \(share text, "limit" integer, after bigint, in_hand bigint\[\]\) CROSS JOIN LATERAL \((.*)\) AS d$/s
/** Of an INSERT of events that are alone. */
const ON_CONFLICT = ' ON CONFLICT (uniq, '
const MOVE_IN = "(SELECT nextval('heddle_delivery_seq') AS seq)"

const OWNER = 'SELECT member FROM heddle_slot WHERE grp = ? AND slot = ?'
/** Deletes of rows that have ended. */
const SETTLEMENTS = [
  'DELETE FROM heddle_delivery WHERE seq = ANY($1::bigint[])',
  'DELETE FROM heddle_delivery WHERE seq = $1',
]

/** Numbers that a transaction draws before it is seen, at most. */
const DRAWN = 4

export class SimulatedServer implements SimulatedStore {
  readonly #file = new Database(':memory:')
  readonly #world: World
  readonly #texts = new Map<string, Translated>()
  readonly #prepared = new Map<string, Database.Statement<unknown[]>>()
  readonly #listeners = new Set<Listener>()
  /** Statements that are sent and not done, by the process that they are of. */
  readonly #sent = new Map<object, number>()
  /** The last number of `heddle_delivery_seq`: no transaction takes one back. */
  #last = 0
  /** Drawn by the statement that runs. */
  #numbers: number[] = []
  #nextXid = 1
  /** Transactions that are under way. */
  readonly #open = new Set<number>()
  /** Those that wait until they may write. */
  readonly #begun = new Set<Transaction>()
  #isAway = false
  #writer: Transaction | null = null
  /** Whose statement is run. */
  #owner: object = {}
  #waiting: { holder: Holder; run: () => void }[] = []

  constructor(world: World) {
    this.#world = world
    const file = this.#file
    file.function('clock_timestamp', () => world.nowMs())
    // One transaction writes at a time.
    file.function('hashtextextended', (_, __) => 0)
    file.function('pg_advisory_xact_lock', (_) => null)
    file.function('random', () => world.draw.fraction())
    file.function('hashtext', { deterministic: true }, (text: unknown) => (text === null ? null : hashOf(String(text))))
    file.function('pg_sequence_last_value', (_) => (this.#last === 0 ? null : this.#last))
    file.function('pg_snapshot_xmin', () => String(this.#open.size === 0 ? this.#nextXid : Math.min(...this.#open)))
    // It is given back at once.
    file.function('pg_current_xact_id', () => String(this.#nextXid++))
    file.function('pg_notify', (_, payload: unknown) => this.#notify(String(payload)))
  }

  /** A transaction of the process is open: if it stands still, all others do. */
  isWriting(owner: object): boolean {
    return this.#writer !== null && this.#writer.holder.owner === owner
  }

  get hasWriter(): boolean {
    return this.#writer !== null
  }

  /** The process has sent what is not done. */
  isBusy(owner: object): boolean {
    return (this.#sent.get(owner) ?? 0) > 0 || [...this.#begun].some(({ holder }) => holder.owner === owner)
  }

  get isAway(): boolean {
    return this.#isAway
  }

  set isAway(isAway: boolean) {
    this.#isAway = isAway
    // Whoever listens does so again, and may have missed something.
    if (!isAway) this.#notify('')
  }

  connect(holder: Holder, isSlow = false): StoreDatabase {
    return new ServerConnection(this, this.#world, holder, isSlow)
  }

  all<T>(sql: string, ...params: SqlValue[]): T[] {
    return this.#prepare(sql).all(...params) as T[]
  }

  #prepare(text: string): Database.Statement<unknown[]> {
    let statement = this.#prepared.get(text)
    if (statement === undefined) {
      statement = this.#file.prepare(text)
      this.#prepared.set(text, statement)
    }
    return statement
  }

  dropDead(): void {
    for (const transaction of this.#begun) if (!transaction.holder.isAlive) this.#forget(transaction)
    if (this.#writer !== null && !this.#writer.holder.isAlive) this.end(this.#writer, 'ROLLBACK')
    for (const listener of this.#listeners) if (!listener.holder.isAlive) this.#listeners.delete(listener)
  }

  /** Some come late, and some never. */
  #notify(payload: string): number {
    const { draw, isHealed, later } = this.#world
    for (const { holder, told } of this.#listeners) {
      if (!isHealed() && draw.is(0.03)) continue
      later(draw.is(0.1) ? draw.below(400) : draw.below(3), () => holder.awake(() => told(payload)))
    }
    return 0
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  // ── numbers ───────────────────────────────────────────────────────────────

  #nextval(): number {
    if (this.#writer !== null) this.#writer.isDrawing = true
    const number = this.#writer?.drawn.shift() ?? ++this.#last
    this.#numbers.push(number)
    return number
  }

  #drawing(): Outcome {
    const others = [...this.#begun].filter(({ isDrawing }) => !isDrawing).map(({ xid }) => xid)
    const rows = [...this.#open]
      .filter((xid) => !others.includes(xid))
      .map((xid) => ({ xid: String(xid), is_known: true }))
    return { rowCount: rows.length, rows }
  }

  #newXid(): number {
    const xid = this.#nextXid++
    this.#open.add(xid)
    return xid
  }

  // ── transactions ──────────────────────────────────────────────────────────

  /** Runs when no transaction is under way. */
  whenFree(holder: Holder, run: () => void): void {
    if (this.#writer === null) return run()
    this.#waiting.push({ holder, run })
  }

  /** Some draw numbers long before the others see what they write. */
  begin(holder: Holder, isEarly: boolean): Transaction {
    const drawn = isEarly ? Array.from({ length: DRAWN }, () => ++this.#last) : []
    const transaction = { holder, xid: this.#newXid(), drawn, isDrawing: isEarly }
    this.#begun.add(transaction)
    return transaction
  }

  write(transaction: Transaction): void {
    this.#file.exec('BEGIN')
    this.#writer = transaction
    this.#world.record?.({ what: 'BEGIN' })
  }

  end(transaction: Transaction, sql: 'COMMIT' | 'ROLLBACK'): void {
    if (this.#writer !== transaction) throw new Error('a transaction ends that is not under way')
    this.#file.exec(sql)
    this.#writer = null
    this.#world.record?.({ what: sql })
    this.#forget(transaction)
    const waiting = this.#waiting
    this.#waiting = []
    for (const { holder, run } of waiting) if (holder.isAlive) holder.awake(() => this.whenFree(holder, run))
  }

  #forget(transaction: Transaction): void {
    this.#begun.delete(transaction)
    this.#open.delete(transaction.xid)
  }

  // ── statements ────────────────────────────────────────────────────────────

  sent(owner: object): void {
    this.#sent.set(owner, (this.#sent.get(owner) ?? 0) + 1)
  }

  done(owner: object): void {
    this.#sent.set(owner, this.#sent.get(owner)! - 1)
  }

  /**
   * @param isAlone no part of a transaction: its commit takes time
   * @param isSlow it is one of a user, which takes longer
   */
  run(sql: string, params: Params, settle: Settle, { owner }: Holder, isAlone: boolean, isSlow: boolean): void {
    this.#owner = owner
    this.#numbers = []
    const record = (outcome: Outcome | null): void => {
      const { nowMs, record: told } = this.#world
      if (told === undefined) return
      // Whoever gets the rows may take some out.
      const kept = outcome === null ? null : { ...outcome, rows: [...outcome.rows] }
      const numbers = this.#numbers
      const slots =
        numbers.length === 0
          ? []
          : this.all<{ seq: number; slot: number }>(
              `SELECT seq, slot FROM heddle_delivery WHERE key IS NULL AND seq IN (${numbers.join()})`,
            )
      told({ what: 'statement', sql, params, outcome: kept, numbers, slots, nowMs: nowMs() })
    }
    try {
      if (isAlone && sql.startsWith('INSERT INTO heddle_delivery (grp') && !sql.includes(ON_CONFLICT))
        return this.#insert(sql, params, settle, isSlow)
      if (isAlone && sql.startsWith('WITH moved AS')) return this.#assign(sql, params, settle)
      const outcome = this.#outcomeOf(sql, params)
      record(outcome)
      settle.resolve(outcome)
    } catch (error) {
      record(null)
      const failure = failureOf(error, sql)
      if (error instanceof Finding) this.#world.failed(error)
      else if (failure.kind === 'syntax') this.#world.failed(failure)
      settle.reject(failure)
    }
  }

  #outcomeOf(sql: string, params: Params): Outcome {
    if (sql.startsWith('SET LOCAL ')) return { rowCount: 0, rows: [] }
    if (sql === DRAWING_TRANSACTIONS) return this.#drawing()
    if (sql.startsWith('INSERT INTO heddle_delivery (grp') && sql.includes(ON_CONFLICT))
      return this.#putUnique(partsOf(sql, UNIQUE), params)
    if (sql.startsWith('INSERT INTO heddle_delivery (grp')) {
      const { columns, rows } = this.#newRows(sql, params)
      for (const row of rows) this.#put(columns, row, this.#nextval())
      return { rowCount: rows.length, rows: [] }
    }
    if (sql.startsWith('WITH held AS')) return this.#deleteHeld(partsOf(sql, DELETE_HELD), params)
    if (sql.startsWith('WITH free AS')) return this.#take(partsOf(sql, TAKE), params)
    if (sql.startsWith('SELECT p.n, f.share')) return this.#nextShares(partsOf(sql, NEXT_SHARES), params)
    if (sql.startsWith('SELECT d.* FROM json_to_recordset')) return this.#readShares(partsOf(sql, READ_SHARES), params)
    if (sql.startsWith('UPDATE heddle_delivery') && sql.includes('json_to_recordset'))
      return this.#note(partsOf(sql, NOTE), params)
    if (sql.startsWith('WITH due AS')) return this.#promote(partsOf(sql, PROMOTE), params)
    if (SETTLEMENTS.includes(sql)) this.#judgeWriter(sql.replace('DELETE', 'SELECT DISTINCT grp, slot'), params)
    // Joined into the others SQLite would draw one for each time that it is named.
    if (sql.includes(MOVE_IN)) return this.#plain(sql.replace(MOVE_IN, `(SELECT ${this.#nextval()} AS seq)`), params)
    return this.#plain(sql, params)
  }

  #translated(sql: string): Translated {
    let text = this.#texts.get(sql)
    if (text === undefined) {
      text = translated(sql)
      this.#texts.set(sql, text)
    }
    return text
  }

  #plain(sql: string, params: Params): Outcome {
    const text = this.#translated(sql)
    const statement = this.#prepare(text.text)
    const given = params.length === 0 ? [] : [named(text, params)]
    if (!statement.reader) return { rowCount: statement.run(...given).changes, rows: [] }
    const rows = statement.all(...given) as Row[]
    return { rowCount: rows.length, rows: rows.map(withFlags) }
  }

  #rows<T>(sql: string, params: Params): T[] {
    return this.#plain(sql, params).rows as T[]
  }

  /** @param isIfAlone one like it may be there: then nothing is inserted @returns false if nothing was */
  #put(columns: readonly string[], row: readonly SqlValue[], seq: number, isIfAlone = false): boolean {
    const marks = row.map(() => '?').join(', ')
    const or = isIfAlone ? ' OR IGNORE' : ''
    const { changes } = this.#prepare(
      `INSERT${or} INTO heddle_delivery (seq, ${columns.join(', ')}) VALUES (?, ${marks})`,
    ).run(seq, ...row)
    return changes === 1
  }

  /** A number is drawn for each row that might come. */
  #putUnique([columns, selected, from = '', conflict]: string[], params: Params): Outcome {
    const text = this.#translated(`SELECT ${selected}${from}`)
    const fresh = this.#prepare(text.text).raw().all(named(text, params)) as SqlValue[][]
    const end = this.#translated(conflict!)
    const rows: Row[] = []
    for (const row of fresh) {
      const values = row.map((_, n) => `@c${n}`).join(', ')
      const given = Object.fromEntries(row.map((value, n) => [`c${n}`, value]))
      const statement = this.#prepare(
        `INSERT INTO heddle_delivery (seq, ${columns}) VALUES (@seq, ${values}) ${end.text}`,
      )
      rows.push(...(statement.all({ ...given, ...named(end, params), seq: this.#nextval() }) as Row[]))
    }
    return { rowCount: rows.length, rows }
  }

  /** What an INSERT of events would insert now. */
  #newRows(sql: string, params: Params): { columns: string[]; rows: SqlValue[][]; hasXid: boolean } {
    const [columns, selected, events, join, xid] = partsOf(sql, INSERT)
    const text = this.#translated(`SELECT ${selected} FROM ${events}${join} ORDER BY e.n`)
    const rows = this.#prepare(text.text).raw().all(named(text, params)) as SqlValue[][]
    return { columns: columns!.split(', '), rows, hasXid: xid !== undefined }
  }

  /** Its groups and its numbers are those of when it begins; it is seen later. */
  #insert(sql: string, params: Params, settle: Settle, isSlow: boolean): void {
    const { draw, later, isHealed, faults } = this.#world
    const { columns, rows, hasXid } = this.#newRows(sql, params)
    let xid = hasXid ? this.#newXid() : 0
    const seqs = rows.map(() => ++this.#last)
    this.#world.record?.({
      what: 'begun',
      sql,
      params,
      numbers: seqs,
      rows,
      columns,
      nowMs: this.#world.nowMs(),
    })
    if (xid === 0) later(draw.below(3), () => (xid = this.#newXid()))
    const ms = isSlow ? draw.of([10, 100, 1500]) : draw.is(0.1) ? draw.below(60) : draw.below(3)
    later(hasXid ? ms : 3 + ms, () => {
      this.whenFree(ALWAYS, () => {
        this.#open.delete(xid)
        // Its numbers are used up all the same.
        if (!isHealed() && isSlow && draw.is(faults.refused)) return settle.reject(unavailable())
        const inserted = rows.map((row, n) => [seqs[n]!, ...row])
        this.#world.record?.({ what: 'seen', columns, deleted: [], inserted })
        for (const [n, row] of rows.entries()) this.#put(columns, row, seqs[n]!)
        settle.resolve({ rowCount: rows.length, rows: [] })
      })
    })
  }

  /** Two at a time wait for each other's rows, and the second one finds them gone. */
  #assign(sql: string, params: Params, settle: Settle): void {
    const { draw, later } = this.#world
    const [condition, columns, selected, join] = partsOf(sql, ASSIGN)
    const found = this.#rows<{ seq: number }>(`SELECT seq FROM heddle_delivery WHERE ${condition}`, [])
    const text = this.#translated(
      `WITH moved AS (SELECT * FROM heddle_delivery WHERE ${condition}) SELECT d.seq, ${selected} FROM moved AS d${join} ORDER BY d.seq`,
    )
    const select = (): SqlValue[][] => this.#prepare(text.text).raw().all(named(text, params)) as SqlValue[][]
    const fresh = select()
    const names = columns!.split(', ')
    const wereFound = this.#rowsOf(found)
    const xid = this.#newXid()
    const seqs = fresh.map(() => ++this.#last)
    const { record, nowMs } = this.#world
    const drawn = { numbers: seqs, rows: fresh.map(([, ...row]) => row), columns: names, nowMs: nowMs() }
    record?.({ what: 'begun', sql, params, ...drawn })
    later(draw.is(0.1) ? draw.below(60) : draw.below(3), () => {
      this.whenFree(ALWAYS, () => {
        // It waits for who replaces one of them, and moves what that has written.
        if (this.#rowsOf(found) !== wereFound) replace(fresh, select(), names)
        const gone = this.#prepare('DELETE FROM heddle_delivery WHERE seq = ?')
        const moved = new Set(found.flatMap(({ seq }) => (gone.run(seq).changes === 1 ? [seq] : [])))
        const inserted = fresh
          .flatMap(([seq, ...row], n) => (moved.has(seq as number) ? [[seqs[n]!, ...row]] : []))
          .filter(([seq, ...row]) => this.#put(names, row, seq as number, true))
        record?.({ what: 'seen', columns: names, deleted: [...moved], inserted })
        this.#open.delete(xid)
        settle.resolve({ rowCount: fresh.length, rows: [] })
      })
    })
  }

  #rowsOf(found: readonly { seq: number }[]): string {
    const row = this.#prepare('SELECT * FROM heddle_delivery WHERE seq = ?')
    return JSON.stringify(found.map(({ seq }) => row.get(seq)))
  }

  #deleteHeld([held]: string[], params: Params): Outcome {
    const slots = this.#rows<{ grp: number; slot: number }>(held!, params.slice(0, 4))
    const gone = 'DELETE FROM heddle_delivery WHERE grp = $1 AND slot = $2 AND seq = ANY($3::bigint[])'
    for (const { grp, slot } of slots) {
      const row =
        'SELECT DISTINCT grp, slot FROM heddle_delivery WHERE grp = $1 AND slot = $2 AND seq = ANY($3::bigint[])'
      this.#judgeWriter(row, [grp, slot, params[4]!])
      this.#plain(gone, [grp, slot, params[4]!])
    }
    return { rowCount: slots.length, rows: slots }
  }

  #take([free]: string[], params: Params): Outcome {
    const [me] = params
    const slots = this.#rows<{ grp: number; slot: number; member: number | null }>(free!, params)
    if (this.#rows('SELECT 1 FROM heddle_member WHERE id = $1', [me!]).length === 0) return { rowCount: 0, rows: [] }
    const rows = slots.map(({ grp, slot, member }) => {
      const sql = 'UPDATE heddle_slot SET member = $1, epoch = epoch + 1 WHERE grp = $2 AND slot = $3 RETURNING epoch'
      const [{ epoch }] = this.#rows<{ epoch: number }>(sql, [me!, grp, slot]) as [{ epoch: number }]
      return { grp, slot, epoch, member }
    })
    return { rowCount: rows.length, rows }
  }

  /** Only the owner of a slot writes what has become of its rows. @param sql asks for their slots */
  #judgeWriter(sql: string, params: Params): void {
    const { member, name } = this.#world.memberOf(this.#owner)
    for (const { grp, slot } of this.#rows<{ grp: number; slot: number }>(sql, params)) {
      const owners = this.all<{ member: number | null }>(OWNER, grp, slot)
      if (owners.length === 0 || owners[0]!.member === member) continue
      throw new Finding(`${name} writes of a row of group ${grp}, and its slot is that of member ${owners[0]!.member}`)
    }
  }

  #note(_: string[], [list]: Params): Outcome {
    const sql =
      'UPDATE heddle_delivery SET attempt = $1, deaths = $2, error = $3, begun = $4, retry_ms = $5, due_ms = $6 WHERE seq = $7 AND attempt <= $1'
    let rowCount = 0
    for (const note of JSON.parse(String(list)) as Record<string, SqlValue>[]) {
      const { attempt, deaths, error, isBegun, retryMs, dueMs, seq } = note
      const params = [attempt!, deaths!, error!, Number(isBegun), retryMs!, dueMs!, seq!]
      this.#judgeWriter('SELECT grp, slot FROM heddle_delivery WHERE seq = $1', [seq!])
      rowCount += this.#plain(sql, params).rowCount
    }
    return { rowCount, rows: [] }
  }

  /** Of one priority after another: SQLite joins nothing to what depends on it. */
  #nextShares([shares]: string[], [group, ...rest]: Params): Outcome {
    const sql = shares!.replaceAll('p.after', '$2').replaceAll('p.until', '$3').replace('$5', '$4')
    const limit = rest.pop()!
    const rows = rest.flatMap((after, n) =>
      this.#rows<Row>(sql, [group!, after, String(n + 1), limit]).map((row): Row => ({ n, ...row })),
    )
    return { rowCount: rows.length, rows }
  }

  #readShares([rows]: string[], [group, asks, slots]: Params): Outcome {
    const sql = rows!
      .replaceAll('s.share', '$2')
      .replaceAll('s.after', '$4')
      .replace('<> ALL (s.in_hand)', 'NOT IN (SELECT value FROM json_each($5))')
      .replace('s."limit"', '$6')
    const all = (JSON.parse(String(asks)) as ShareAsk[]).flatMap(({ share, limit, after, in_hand: inHand }) =>
      this.#rows<Row>(sql, [group!, share, slots!, after, JSON.stringify(inHand), limit]),
    )
    return { rowCount: all.length, rows: all }
  }

  #promote([moved]: string[], params: Params): Outcome {
    const columns = moved!.split(', ')
    const due = this.#rows<Row>(
      'SELECT * FROM heddle_delivery WHERE seq = ANY($1::bigint[]) AND due_ms > 0 AND due_ms <= $2 ORDER BY due_ms, seq',
      params,
    )
    this.#judgeWriter(
      'SELECT DISTINCT grp, slot FROM heddle_delivery WHERE seq = ANY($1::bigint[]) AND due_ms > 0 AND due_ms <= $2',
      params,
    )
    for (const row of due) {
      const seq = this.#nextval()
      this.#plain('DELETE FROM heddle_delivery WHERE seq = $1', [row.seq!])
      const place = row.place === null ? null : seq
      this.#put(['place', ...columns], [place, ...columns.map((column) => row[column]!)], seq)
      if (place === null) continue
      const replays = "UPDATE heddle_dead SET replay_seq = $1 WHERE replay_seq = $2 AND replay = 'running'"
      this.#plain(replays, [seq, row.seq!])
    }
    const groups = [...new Set(due.map(({ grp }) => grp))]
    return { rowCount: groups.length, rows: groups.map((grp) => ({ grp })) }
  }
}

/** What the server itself does waits for nobody. */
const ALWAYS: Holder = { owner: {}, isAlive: true, isFrozen: false, later: () => {}, awake: (work) => work() }

function partsOf(sql: string, known: RegExp): string[] {
  const found = known.exec(sql)
  if (found === null) throw new Error(`the simulated server does not know this statement: ${sql}`)
  return found.slice(1)
}

/** What REPLACE in unique-rows.ts sets. */
const REPLACED = ['thread', 'envelope', 'payload', 'expires_ms', 'share', 'due_ms']

/** Rows begin with the numbers of those that they are made of. */
function replace(rows: SqlValue[][], now: readonly SqlValue[][], names: readonly string[]): void {
  const group = 1 + names.indexOf('grp')
  for (const row of rows) {
    const other = now.find((each) => each[0] === row[0] && each[group] === row[group])
    if (other !== undefined) for (const name of REPLACED) row[1 + names.indexOf(name)] = other[1 + names.indexOf(name)]!
  }
}

/** A server has a type for what is true. */
function withFlags(row: Row): Row {
  for (const name of Object.keys(row)) if (name.startsWith('has_') && row[name] !== null) row[name] = row[name] === 1
  return row
}

function hashOf(text: string): number {
  let hash = 7
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0
  return hash
}

function failureOf(error: unknown, sql: string): DbError {
  const message = error instanceof Error ? error.message : String(error)
  if (message.includes('UNIQUE')) return new DbError('unique_violation', message, { cause: error })
  return new DbError('syntax', `${message}: ${sql}`, { cause: error })
}

const unavailable = (): DbError => new DbError('unavailable', 'the simulated server is away')

class ServerConnection implements StoreDatabase {
  readonly dialect = 'postgres' as const
  readonly #server: SimulatedServer
  readonly #world: World
  readonly #holder: Holder
  readonly #isSlow: boolean

  constructor(server: SimulatedServer, world: World, holder: Holder, isSlow: boolean) {
    this.#server = server
    this.#world = world
    this.#holder = holder
    this.#isSlow = isSlow
  }

  listen(_: string, told: (payload: string) => void): () => void {
    return this.#server.listen({ holder: this.#holder, told })
  }

  async query<T>(sql: string, params: Params = []): Promise<T[]> {
    return (await this.#operate(sql, params)).rows as T[]
  }

  async queryOne<T>(sql: string, params: Params = []): Promise<T | null> {
    return (await this.query<T>(sql, params))[0] ?? null
  }

  execute<T>(sql: string, params: Params = []): Promise<{ rowCount: number; rows: T[] }> {
    return this.#operate(sql, params) as Promise<{ rowCount: number; rows: T[] }>
  }

  /** Each on its own connection: they overtake each other. */
  async #operate(sql: string, params: Params): Promise<Outcome> {
    await this.#pause()
    if (this.#goesWrong('refused')) throw unavailable()
    const server = this.#server
    const { owner } = this.#holder
    const outcome = await new Promise<Outcome>((resolve, reject) => {
      // It is on its way: the end of who has sent it does not stop it.
      server.sent(owner)
      this.#world.later(this.#world.draw.below(2), () =>
        server.whenFree(ALWAYS, () => {
          server.done(owner)
          server.run(sql, params, { resolve, reject }, this.#holder, true, this.#isSlow)
        }),
      )
    })
    return this.#answered(outcome)
  }

  async #answered<T>(outcome: T): Promise<T> {
    const isLost = this.#goesWrong('unanswered')
    if (isLost) this.#world.tell(() => 'an answer of the server is lost')
    await this.#pause()
    if (isLost) throw unavailable()
    return outcome
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    const tx = {
      query: async <R>(sql: string, params: Params = []) => (await this.#within(sql, params)).rows as R[],
      queryOne: async <R>(sql: string, params: Params = []) =>
        ((await this.#within(sql, params)).rows[0] as R | undefined) ?? null,
      execute: async <R>(sql: string, params: Params = []) =>
        (await this.#within(sql, params)) as { rowCount: number; rows: R[] },
    } as Queryable
    const { draw } = this.#world
    await this.#pause()
    if (this.#goesWrong('refused')) throw unavailable()
    const isEarly = draw.is(0.1)
    const transaction = this.#server.begin(this.#holder, isEarly)
    if (isEarly) await new Promise<void>((resolve) => this.#holder.later(draw.below(60), resolve))
    await new Promise<void>((resolve) =>
      this.#server.whenFree(this.#holder, () => {
        this.#server.write(transaction)
        resolve()
      }),
    )
    let result: T
    try {
      result = await work(tx)
      if (this.#goesWrong('refused')) throw unavailable()
      this.#server.end(transaction, 'COMMIT')
    } catch (error) {
      this.#server.end(transaction, 'ROLLBACK')
      await this.#pause()
      throw error
    }
    return this.#answered(result)
  }

  async #within(sql: string, params: Params): Promise<Outcome> {
    await this.#pause()
    return new Promise((resolve, reject) =>
      this.#server.run(sql, params, { resolve, reject }, this.#holder, false, false),
    )
  }

  #goesWrong(kind: keyof DatabaseFaults): boolean {
    const { draw, faults, isHealed } = this.#world
    return !isHealed() && (this.#server.isAway || draw.is(faults[kind]))
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#holder.later(this.#world.draw.below(3), resolve))
  }
}
