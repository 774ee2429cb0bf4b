/**
 * A server that several processes share: the statements for PostgreSQL are run by SQLite, each at once, but for what a server makes of time. An INSERT of
 * events has its number in the order before it is seen, statements of one thread overtake each other, and what a process has sent is done also
 * when it dies. Of two transactions one waits for the other, as if they were serializable.
 */
import Database from 'better-sqlite3'
import type { Queryable, SqlValue } from '../../../src/contracts/db.ts'
import { DbError } from '../../../src/core/errors/catalogue.ts'
import type { LogDatabase } from '../../../src/runtime/event-store/database.ts'
import type { Draw } from '../draw.ts'
import type { DatabaseFaults, Holder, SimulatedStore } from './database.ts'

interface World {
  draw: Draw
  faults: DatabaseFaults
  isHealed: () => boolean
  nowMs: () => number
  /** Something of the world happens then, whoever lives. */
  later: (ms: number, run: () => void) => void
  tell: (line: () => string) => void
}

interface Outcome {
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

type Params = readonly SqlValue[]

// TODO: it runs the statements of the log before the event store; `--log postgres` has no use until it runs those of server-store.ts and slots.ts.
const SLOT = '(hashtext(key) & 63)'

/** Slots that a statement takes from together, and rows of each: as the statement has them. */
const TAKEN_ROWS = 128
const TAKEN_OF_SLOT = 32

export class SimulatedServer implements SimulatedStore {
  readonly #file = new Database(':memory:')
  readonly #world: World
  readonly #texts = new Map<string, string>()
  readonly #sequences = new Map<string, number>()
  readonly #listeners = new Set<Listener>()
  /** INSERTs of events whose commit is under way, by the process that they are of. */
  readonly #inserts = new Map<number, number>()
  #isAway = false
  /** Whose transaction is under way. */
  #writer: Holder | null = null
  #waiting: { holder: Holder; run: () => void }[] = []

  constructor(world: World) {
    this.#world = world
    const file = this.#file
    file.function('now', () => world.nowMs())
    file.function('nextval', (name: unknown) => this.#next(String(name)))
    file.function('hashtext', { deterministic: true }, (text: unknown) => (text === null ? null : hashOf(String(text))))
    file.function('to_regclass', (_) => null)
    file.function('pg_notify', (_, payload: unknown) => this.#notify(String(payload)))
  }

  /** A transaction is open: its process must not stand still, since all others would. */
  get isWriting(): boolean {
    return this.#writer !== null
  }

  get isAway(): boolean {
    return this.#isAway
  }

  set isAway(isAway: boolean) {
    this.#isAway = isAway
    // Whoever listens does so again, and may have missed something.
    if (!isAway) this.#notify('')
  }

  connect(holder: Holder): LogDatabase {
    return new ServerConnection(this, this.#world, holder)
  }

  all<T>(sql: string): T[] {
    return this.#file.prepare(sql).all() as T[]
  }

  dropDead(): void {
    if (this.#writer !== null && !this.#writer.isAlive) this.end('ROLLBACK')
    for (const listener of this.#listeners) if (!listener.holder.isAlive) this.#listeners.delete(listener)
  }

  #next(sequence: string): number {
    const next = (this.#sequences.get(sequence) ?? 0) + 1
    this.#sequences.set(sequence, next)
    return next
  }

  #notify(payload: string): number {
    for (const { holder, told } of this.#listeners)
      this.#world.later(this.#world.draw.below(3), () => holder.awake(() => told(payload)))
    return 0
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  // ── statements ────────────────────────────────────────────────────────────

  /** Runs when no transaction is under way. */
  whenFree(holder: Holder, run: () => void): void {
    if (this.#writer === null) return run()
    this.#waiting.push({ holder, run })
  }

  begin(holder: Holder): void {
    this.#file.exec('BEGIN')
    this.#writer = holder
  }

  end(sql: 'COMMIT' | 'ROLLBACK'): void {
    this.#file.exec(sql)
    this.#writer = null
    const waiting = this.#waiting
    this.#waiting = []
    for (const { holder, run } of waiting) if (holder.isAlive) this.whenFree(holder, run)
  }

  /** @param isAlone no part of a transaction: its commit takes time */
  run(sql: string, params: Params, settle: Settle, isAlone: boolean): void {
    if (sql.includes('SET is_clean = ended.is_clean')) return this.#awaitInserts(Number(params[0]), settle)
    if (isAlone && sql.startsWith('INSERT INTO heddle_event (owner')) return this.#insert(sql, params, settle)
    this.#settle(settle, () => this.#outcomeOf(sql, params))
  }

  #settle({ resolve, reject }: Settle, work: () => Outcome): void {
    try {
      resolve(work())
    } catch (error) {
      reject(error)
    }
  }

  #outcomeOf(sql: string, params: Params): Outcome {
    if (sql.includes('CROSS JOIN LATERAL')) return this.#takeKeyed(params)
    if (sql.includes('left_slots AS')) return this.#handOver(sql, params)
    if (sql.includes('left_in_order AS')) return this.#leave(params)
    if (sql.startsWith('CREATE SEQUENCE')) return { rowCount: 0, rows: [] }
    return this.#plain(sql, params)
  }

  #plain(sql: string, params: Params): Outcome {
    let text = this.#texts.get(sql)
    if (text === undefined) {
      text = translated(sql)
      this.#texts.set(sql, text)
    }
    try {
      const statement = this.#file.prepare(text)
      const named = Object.fromEntries(params.map((value, at) => [String(at + 1), listed(value)]))
      const given = params.length === 0 ? [] : [named]
      if (!statement.reader) return { rowCount: statement.run(...given).changes, rows: [] }
      const rows = statement.all(...given)
      return { rowCount: rows.length, rows }
    } catch (error) {
      throw failureOf(error, text)
    }
  }

  /** Who may store, and its number, are asked at once; it is seen later. */
  #insert(sql: string, params: Params, settle: Settle): void {
    const epoch = Number(/WHERE epoch = (\d+)/.exec(sql)![1])
    if (this.all(`SELECT 1 FROM heddle_process WHERE epoch = ${epoch} AND adopter IS NULL`).length === 0)
      return this.#settle(settle, () => this.#plain(sql, params))
    const numbered = sql
      .replace(/\(SELECT epoch FROM heddle_process WHERE [^)]*\)/g, String(epoch))
      .replace("(SELECT nextval('heddle_order'))", () => String(this.#next('heddle_order')))
    const open = this.#inserts
    open.set(epoch, (open.get(epoch) ?? 0) + 1)
    const { draw } = this.#world
    this.#world.later(draw.is(0.1) ? draw.below(60) : draw.below(3), () => {
      this.whenFree(ALWAYS, () => {
        open.set(epoch, open.get(epoch)! - 1)
        this.#settle(settle, () => this.#plain(numbered, params))
      })
    })
  }

  #awaitInserts(epoch: number, settle: Settle): void {
    if ((this.#inserts.get(epoch) ?? 0) === 0) return settle.resolve({ rowCount: 1, rows: [] })
    this.#world.later(1, () => this.#awaitInserts(epoch, settle))
  }

  #takeKeyed([epoch, known]: Params): Outcome {
    const me = Number(epoch)
    if (this.all(`SELECT 1 FROM heddle_process WHERE epoch = ${me} AND adopter IS NULL`).length === 0)
      return { rowCount: 0, rows: [] }
    const slots = this.all<{ slot: number }>(
      `SELECT slot FROM heddle_slot WHERE holder = ${me} AND heir = 0 AND slot IN (${String(known).slice(1, -1)})`,
    )
    const found = slots.flatMap(({ slot }) =>
      this.all<{ seq: number; ord: number; slot: number }>(
        `SELECT seq, ord, ${slot} AS slot FROM heddle_event WHERE owner = 0 AND ${SLOT} = ${slot} ORDER BY ord, seq LIMIT ${TAKEN_OF_SLOT}`,
      ),
    )
    found.sort((a, b) => a.ord - b.ord || a.seq - b.seq)
    const taken = found.slice(0, TAKEN_ROWS)
    if (taken.length === 0) return { rowCount: 0, rows: [] }
    const list = taken.map(({ seq }) => seq).join(', ')
    this.#file.exec(`UPDATE heddle_event SET owner = ${me} WHERE seq IN (${list})`)
    const slotOf = new Map(taken.map(({ seq, slot }) => [seq, slot]))
    const rows = this.all<{ seq: number }>(`SELECT * FROM heddle_event WHERE seq IN (${list})`)
    return { rowCount: rows.length, rows: rows.map((row) => ({ ...row, slot: slotOf.get(row.seq) })) }
  }

  #handOver(sql: string, [epoch]: Params): Outcome {
    const list = /slot IN \((.*?)\)/.exec(sql)![1]!
    const mine = `owner = ${Number(epoch)} AND key IS NOT NULL AND ${SLOT} IN (${list})`
    const rows = this.all(`SELECT seq FROM heddle_event WHERE ${mine}`)
    this.#file.exec(`UPDATE heddle_event SET owner = 0 WHERE ${mine}`)
    this.#file.exec(
      `UPDATE heddle_slot SET holder = heir, heir = 0 WHERE holder = ${Number(epoch)} AND slot IN (${list})`,
    )
    return { rowCount: rows.length, rows }
  }

  #leave([epoch]: Params): Outcome {
    const me = Number(epoch)
    const { changes } = this.#file
      .prepare(`UPDATE heddle_process SET expires_at = -1e15, is_clean = 1 WHERE epoch = ${me} AND adopter IS NULL`)
      .run()
    if (changes === 0) return { rowCount: 0, rows: [] }
    this.#file.exec(`UPDATE heddle_event SET owner = 0 WHERE owner = ${me} AND key IS NOT NULL`)
    this.#file.exec(`UPDATE heddle_slot SET holder = heir, heir = 0 WHERE holder = ${me}`)
    return { rowCount: 1, rows: [] }
  }
}

const ALWAYS: Holder = { isAlive: true, isFrozen: false, later: () => {}, awake: (work) => work() }

function hashOf(text: string): number {
  let hash = 7
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0
  return hash
}

/** What SQLite takes of a statement for PostgreSQL. */
function translated(sql: string): string {
  return (
    sql
      .replace(/::[a-z]+(?:\[\])?/g, '')
      .replace(/now\(\) \+ interval '(\d+) s'/g, 'now() + $1000')
      .replaceAll("'-infinity'", '-1e15')
      .replace(/ FOR (?:KEY SHARE|UPDATE(?: OF e)?(?: SKIP LOCKED)?)/g, '')
      .replace(/SELECT json_array_elements_text\((\$\d+)\)/g, 'SELECT value FROM json_each($1)')
      .replace(/ = ANY\((\$\d+)\)/g, ' IN (SELECT value FROM json_each($1))')
      .replace(
        /SELECT generate_series\(0, (\d+)\)/,
        (_, last: string) => `SELECT value FROM json_each('${series(Number(last))}') WHERE true`,
      )
      .replace(/RETURNING .*/s, (columns) => columns.replaceAll('e.', ''))
      // A list of values has no names of columns there.
      .replace(
        /^(INSERT INTO heddle_event \(.*?\) SELECT .*?), row\.\*\s+FROM \((VALUES .*)\) AS row (\(.*?\)) WHERE seq IS NOT NULL$/s,
        'WITH fresh $3 AS ($2) $1, fresh.* FROM fresh WHERE seq IS NOT NULL',
      )
  )
}

const series = (last: number): string => JSON.stringify(Array.from({ length: last + 1 }, (_, n) => n))

/** A list for ANY is JSON to SQLite. */
function listed(value: SqlValue): SqlValue {
  if (typeof value !== 'string' || !value.startsWith('{') || value.startsWith('{"')) return value
  const items = value.slice(1, -1).split(',')
  if (!items.every((item) => item === '' || /^-?\d+$/.test(item) || /^[a-z]+\.[a-z]+$/.test(item))) return value
  return JSON.stringify(items.filter((item) => item !== '').map((item) => (/^-?\d+$/.test(item) ? Number(item) : item)))
}

function failureOf(error: unknown, sql: string): DbError {
  const message = error instanceof Error ? error.message : String(error)
  if (message.includes('NOT NULL constraint failed: heddle_event.owner'))
    return new DbError('not_null_violation', 'null value in column "owner" of relation "heddle_event"', {
      cause: error,
    })
  if (message.includes('UNIQUE')) return new DbError('unique_violation', message, { cause: error })
  return new DbError('syntax', `${message}: ${sql}`, { cause: error })
}

const unavailable = (): DbError => new DbError('unavailable', 'the simulated server is away')

class ServerConnection implements LogDatabase {
  readonly dialect = 'postgres' as const
  readonly #server: SimulatedServer
  readonly #world: World
  readonly #holder: Holder

  constructor(server: SimulatedServer, world: World, holder: Holder) {
    this.#server = server
    this.#world = world
    this.#holder = holder
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
    const outcome = await new Promise<Outcome>((resolve, reject) => {
      // It is on its way: the end of who has sent it does not stop it.
      this.#world.later(this.#world.draw.below(2), () =>
        this.#server.whenFree(ALWAYS, () => this.#server.run(sql, params, { resolve, reject }, true)),
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
    await this.#pause()
    if (this.#goesWrong('refused')) throw unavailable()
    await new Promise<void>((resolve) =>
      this.#server.whenFree(this.#holder, () => {
        this.#server.begin(this.#holder)
        resolve()
      }),
    )
    let result: T
    try {
      result = await work(tx)
      if (this.#goesWrong('refused')) throw unavailable()
      this.#server.end('COMMIT')
    } catch (error) {
      this.#server.end('ROLLBACK')
      await this.#pause()
      throw error
    }
    return this.#answered(result)
  }

  async #within(sql: string, params: Params): Promise<Outcome> {
    await this.#pause()
    return new Promise((resolve, reject) => this.#server.run(sql, params, { resolve, reject }, false))
  }

  #goesWrong(kind: keyof DatabaseFaults): boolean {
    const { draw, faults, isHealed } = this.#world
    return !isHealed() && (this.#server.isAway || draw.is(faults[kind]))
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#holder.later(this.#world.draw.below(3), resolve))
  }
}
