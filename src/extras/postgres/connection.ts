import pg, { type ClientConfig } from 'pg'
import { DbError } from '../../core/errors/db-error.ts'
import type { Columns, Execution, Preparations } from './execution.ts'
import { endsConnection, toDbError } from './failure.ts'
import type { Statement } from './statement.ts'

/** Statements prepared on one connection; the least recently used goes first. Each holds some 10 KiB or more in the server. */
const MAX_PREPARED = 256

/** One connection to the server. Takes one statement at a time. */
export class Connection implements Preparations {
  readonly #client: pg.Client
  readonly #onDead: (connection: Connection) => void
  readonly #prepared = new Map<Statement, Columns>()
  #closed: string[] = []
  #execution: Execution | null = null
  #isDead = false
  #isOpen = false
  /** Until when (`performance.now()`) the statement under way may take. */
  #deadlineMs = Number.POSITIVE_INFINITY
  /** Since when (`performance.now()`) nobody has it. Kept by the pool. */
  idleSinceMs = 0

  /** @param onDead told once when it has ended, for whatever reason */
  constructor(config: ClientConfig, onDead: (connection: Connection) => void) {
    this.#client = new pg.Client(config)
    this.#onDead = onDead
    // Without a listener a backend that is killed ends the process.
    this.#client.on('error', () => this.#die())
    this.#client.on('end', () => this.#die())
  }

  /** @throws what the driver or the server says */
  async open(): Promise<void> {
    await this.#client.connect()
    this.#isOpen = true
  }

  /** It has been open once. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  get isDead(): boolean {
    return this.#isDead
  }

  get isBusy(): boolean {
    return this.#execution !== null
  }

  /** False when something has left a transaction open on it. */
  get isClean(): boolean {
    return this.#client.getTransactionStatus() === 'I'
  }

  /** @param limitMs how long it may take before it is given up, and the connection with it */
  run(execution: Execution, limitMs: number): void {
    this.#execution = execution
    this.#deadlineMs = performance.now() + limitMs
    this.#client.query(execution.on(this))
  }

  /** Runs a text verbatim, which may hold several statements; the server finds their ends. @throws DbError */
  async script(sql: string): Promise<void> {
    try {
      await this.#client.query(sql)
    } catch (thrown) {
      throw toDbError(thrown)
    }
  }

  /** Gives the statement under way up when its time is over: the server does not answer, not even that it has ended the statement. */
  expire(nowMs: number, limitMs: number): void {
    const execution = this.#execution
    if (execution === null || nowMs < this.#deadlineMs) return
    // First, so that nobody gets it next.
    this.destroy()
    execution.fail(
      new DbError('timeout', `The database has not answered within ${limitMs} ms; what the statement did is not known`),
    )
  }

  /** Prepared statements are made anew: what they stand on has changed. */
  forgetPrepared(): void {
    for (const { name } of this.#prepared.keys()) this.#closed.push(name)
    this.#prepared.clear()
  }

  /** Ends it in order when it is idle, else at once. */
  close(): void {
    if (this.#isDead) return
    if (this.isBusy) return this.destroy()
    this.#die()
    this.#client.end().catch(() => {}) // It is out of use either way.
  }

  destroy(): void {
    this.#client.connection.stream.destroy()
    this.#die()
  }

  #die(): void {
    if (this.#isDead) return
    this.#isDead = true
    this.#onDead(this)
  }

  // ── for the execution ─────────────────────────────────────────────────────

  takeClosed(): readonly string[] {
    if (this.#closed.length === 0) return this.#closed
    const closed = this.#closed
    this.#closed = []
    return closed
  }

  columnsOf(statement: Statement): Columns | undefined {
    const columns = this.#prepared.get(statement)
    if (columns !== undefined && this.#prepared.size > MAX_PREPARED / 2) {
      this.#prepared.delete(statement)
      this.#prepared.set(statement, columns)
    }
    return columns
  }

  prepared(statement: Statement, columns: Columns): void {
    if (this.#prepared.size >= MAX_PREPARED) {
      const oldest = this.#prepared.keys().next().value as Statement
      this.#prepared.delete(oldest)
      this.#closed.push(oldest.name)
    }
    this.#prepared.set(statement, columns)
  }

  doubtful({ name }: Statement): void {
    this.#closed.push(name)
  }

  settled(execution: Execution): void {
    this.#execution = null
    if (execution.failure !== null && endsConnection(execution.failure)) this.destroy()
  }
}
