/** A real SQLite in memory behind connections that are slow, break off, and whose last answer may be lost. */
import Database from 'better-sqlite3'
import type { Queryable, SqlValue } from '../../../src/contracts/db.ts'
import { DbError } from '../../../src/core/errors/catalogue.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import type { Draw } from '../draw.ts'

/** What goes wrong, of 1: an operation that is refused, and one that is done and whose answer is lost. */
export interface DatabaseFaults {
  refused: number
  unanswered: number
}

interface Surroundings {
  draw: Draw
  faults: DatabaseFaults
  /** Faults are over. */
  isHealed: () => boolean
  nowMs: () => number
  tell: (line: () => string) => void
}

/** Whoever has a connection: a thread, which may end at any moment. */
export interface Holder {
  /** The process that it is of. */
  readonly owner: object
  readonly isAlive: boolean
  /** It stands still, and goes on later. */
  readonly isFrozen: boolean
  /** Runs at once, or when it goes on. */
  awake(run: () => void): void
  /** Runs later, unless the holder has ended by then. */
  later(ms: number, run: () => void): void
}

type Param = SqlValue | Buffer

/** Whatever keeps the log of a run. */
export interface SimulatedStore {
  isAway: boolean
  /** A transaction is open: what it has written may not stay. */
  readonly hasWriter: boolean
  /** A connection of one thread. @param isSlow its inserts are those of a user's transactions, which take longer */
  connect(holder: Holder, isSlow?: boolean): StoreDatabase
  /** The process has sent what is done whether it lives or not. */
  isBusy(owner: object): boolean
  /** While a transaction of the process is open it must not stand still: all others would. */
  isWriting(owner: object): boolean
  /** Whose threads have ended: what they had begun is undone. */
  dropDead(): void
  /** Asks from outside, at once. */
  all<T>(sql: string, ...params: SqlValue[]): T[]
}

export class SimulatedDatabase implements SimulatedStore {
  readonly #file = new Database(':memory:')
  readonly #prepared = new Map<string, Database.Statement<unknown[]>>()
  readonly #world: Surroundings
  /** The transaction that is under way: there is one writer. */
  #writer: Holder | null = null
  readonly #waiting: { holder: Holder; run: () => void }[] = []
  isAway = false

  constructor(world: Surroundings) {
    this.#world = world
    // In seconds.
    this.#file.function('unixepoch', (_) => world.nowMs() / 1000)
  }

  /** A connection of one thread: what it sends is done in its order. */
  connect(holder: Holder): StoreDatabase {
    return new Connection(this, this.#world, holder)
  }

  /** What a process has sent ends with it. */
  isBusy(): boolean {
    return false
  }

  isWriting(): boolean {
    return this.hasWriter
  }

  get hasWriter(): boolean {
    return this.#writer !== null
  }

  /** Whose threads have ended: what they had begun is undone. */
  dropDead(): void {
    if (this.#writer !== null && !this.#writer.isAlive) {
      this.run('ROLLBACK', [])
      this.#writer = null
    }
    this.#next()
  }

  #prepare(sql: string): Database.Statement<unknown[]> {
    let statement = this.#prepared.get(sql)
    if (statement === undefined) {
      statement = this.#file.prepare(sql)
      this.#prepared.set(sql, statement)
    }
    return statement
  }

  run(sql: string, params: readonly Param[]): { rowCount: number; rows: unknown[] } {
    const statement = this.#prepare(sql)
    // `$1` is a name to SQLite.
    const named = Object.fromEntries(params.map((value, at) => [String(at + 1), value]))
    if (statement.reader) {
      const rows = params.length === 0 ? statement.all() : statement.all(named)
      return { rowCount: rows.length, rows }
    }
    const { changes } = params.length === 0 ? statement.run() : statement.run(named)
    return { rowCount: changes, rows: [] }
  }

  /** Waits for the writer. */
  free(holder: Holder, run: () => void): void {
    this.#waiting.push({ holder, run })
    this.#next()
  }

  #next(): void {
    while (this.#writer === null) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      if (next.holder.isAlive) next.run()
    }
  }

  begin(holder: Holder): void {
    this.run('BEGIN', [])
    this.#writer = holder
  }

  end(sql: 'COMMIT' | 'ROLLBACK'): void {
    this.run(sql, [])
    this.#writer = null
    this.#next()
  }

  all<T>(sql: string, ...params: SqlValue[]): T[] {
    return this.#prepare(sql).all(...params) as T[]
  }
}

class Connection implements StoreDatabase {
  readonly dialect = 'sqlite' as const
  readonly #db: SimulatedDatabase
  readonly #world: Surroundings
  readonly #holder: Holder
  /** The one before it has reached the database. */
  #last: Promise<void> = Promise.resolve()

  constructor(db: SimulatedDatabase, world: Surroundings, holder: Holder) {
    this.#db = db
    this.#world = world
    this.#holder = holder
  }

  claim(): boolean {
    return true
  }

  async query<T>(sql: string, params: readonly SqlValue[] = []): Promise<T[]> {
    return (await this.#send(sql, params)).rows as T[]
  }

  async queryOne<T>(sql: string, params: readonly SqlValue[] = []): Promise<T | null> {
    return (await this.query<T>(sql, params))[0] ?? null
  }

  execute<T>(sql: string, params: readonly SqlValue[] = []): Promise<{ rowCount: number; rows: T[] }> {
    return this.#send(sql, params) as Promise<{ rowCount: number; rows: T[] }>
  }

  #send(sql: string, params: readonly SqlValue[]): Promise<{ rowCount: number; rows: unknown[] }> {
    return this.#operate(() => this.#whenFree(() => this.#db.run(sql, params as Param[])))
  }

  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    const tx: Queryable = {
      query: async <R>(sql: string, params: readonly SqlValue[] = []) => (await this.#within(sql, params)).rows as R[],
      queryOne: async <R>(sql: string, params: readonly SqlValue[] = []) =>
        ((await this.#within(sql, params)).rows[0] as R | undefined) ?? null,
      execute: async <R>(sql: string, params: readonly SqlValue[] = []) =>
        (await this.#within(sql, params)) as { rowCount: number; rows: R[] },
    } as Queryable
    return this.#operate(async () => {
      await this.#whenFree(() => this.#db.begin(this.#holder))
      try {
        const result = await work(tx)
        if (this.#goesWrong('refused')) throw unavailable()
        this.#db.end('COMMIT')
        return result
      } catch (error) {
        this.#db.end('ROLLBACK')
        throw error
      }
    })
  }

  async #within(sql: string, params: readonly SqlValue[]): Promise<{ rowCount: number; rows: unknown[] }> {
    await this.#pause()
    return this.#db.run(sql, params as Param[])
  }

  #whenFree<T>(run: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#db.free(this.#holder, () => {
        try {
          resolve(run())
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /** It reaches the database after what was sent before, and the answer takes its time, too. */
  async #operate<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#last
    let reached!: () => void
    this.#last = new Promise((resolve) => {
      reached = resolve
    })
    await before
    try {
      await this.#pause()
      if (this.#goesWrong('refused')) throw unavailable()
      const result = await work()
      if (this.#goesWrong('unanswered')) {
        this.#world.tell(() => 'an answer of the database is lost')
        throw unavailable()
      }
      return result
    } finally {
      reached()
      await this.#pause()
    }
  }

  #goesWrong(kind: keyof DatabaseFaults): boolean {
    const { draw, faults, isHealed } = this.#world
    return !isHealed() && (this.#db.isAway || draw.is(faults[kind]))
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#holder.later(this.#world.draw.below(3), resolve))
  }
}

const unavailable = (): DbError => new DbError('unavailable', 'the simulated database is away')
