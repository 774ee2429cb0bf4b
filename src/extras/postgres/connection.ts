// One connection to PostgreSQL: for statements, or for notifications.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { RecentlyUsed } from '../../core/collections/recently-used.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import type { Outcome } from '../../stores/sql/database.ts'
import { type Access, connect } from './access.ts'
import { type Columns, Execution, type Preparations, type Prepared, wireValues } from './execution.ts'
import { endsConnection, reasonOf, toDbError } from './failure.ts'
import { openSession, sessionFault, setSession } from './session.ts'
import type { SessionRules } from './session-rules.ts'
import { CHECK, ROLLBACK, type Statement } from './statement.ts'

/** Statements prepared on one connection. Each takes 10 KiB or more in the server. */
const MAX_PREPARED = 256
/** Bytes that tell the prepared statements of one connection from those of another. */
const MARK_BYTES = 9

/** One connection to the server. Takes one statement at a time. */
export class PostgresConnection implements Preparations {
  readonly #client: pg.Client
  readonly #access: Access
  readonly #limitMs: number
  readonly #onDead: (connection: PostgresConnection) => void
  /** Part of the name of each of its statements: behind a pooler that does not keep sessions the server knows none of that name, and nothing runs. */
  readonly #mark = randomBytes(MARK_BYTES).toString('base64url')
  /** By digest. */
  readonly #prepared = new RecentlyUsed<string, Prepared>(MAX_PREPARED)
  /** Each text that is new to the server comes behind a look at a statement that only this session has. */
  #isGuarded = true
  #closed: string[] = []
  #execution: Execution | null = null
  #isDead = false
  /** Why it is dead. */
  #end: unknown = null
  #isOpen = false
  /** When the running statement must have ended, by `performance.now()`. */
  #deadlineMs = Number.POSITIVE_INFINITY
  /** Since when it is idle, by `performance.now()`. Set by the pool. */
  idleSinceMs = 0

  /**
   * @param limitMs how long a statement may take; then it fails and the connection is ended
   * @param onDead called once when the connection has ended, for any reason
   */
  constructor(access: Access, limitMs: number, onDead: (connection: PostgresConnection) => void) {
    this.#client = new pg.Client(access.config)
    this.#access = access
    this.#limitMs = limitMs
    this.#onDead = onDead
    // Without a listener the end of the server's backend process would end this process.
    this.#client.on('error', (thrown) => this.#die(thrown))
    this.#client.on('end', () => this.#die())
    this.#client.connection.on('bindComplete', () => {
      this.#execution?.bound()
    })
  }

  /**
   * @param prepare called before it counts as open
   * @throws the error of the driver or the server
   */
  async open(prepare?: () => Promise<void>): Promise<void> {
    try {
      await connect(this.#client, this.#access)
      if (this.keepsSession) await openSession(this.#client, this.#access, this.#mark)
      await prepare?.()
      this.#isOpen = true
    } catch (thrown) {
      throw reasonOf(thrown, this.#end)
    }
  }

  onNotification(told: (payload: string) => void): void {
    this.#client.on('notification', ({ payload }) => told(payload ?? ''))
  }

  /** It was open at some time. */
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

  run(execution: Execution): void {
    execution.through(this)
    // It may have ended since it was granted: the server's last words may follow an answer in the same packet.
    if (this.#isDead) return execution.fail(this.#end)
    this.#execution = execution
    this.#deadlineMs = performance.now() + this.#limitMs
    this.#client.query(execution)
  }

  /** Does not reject for errors of the server or the connection: the execution has them. @throws DbError for values that are refused */
  execute(statement: Statement, params: readonly unknown[]): Promise<Execution> {
    const values = wireValues(params, statement.parameterCount)
    return new Promise((resolve) => this.run(new Execution(statement, values, resolve)))
  }

  /** @throws DbError */
  async send(statement: Statement, params: readonly unknown[] = []): Promise<Outcome> {
    const execution = await this.execute(statement, params)
    if (execution.failure !== null) throw toDbError(execution.failure)
    return execution
  }

  /** Never rejects. */
  async rollback(): Promise<void> {
    if (this.#isDead) return
    try {
      await this.send(ROLLBACK)
    } catch {
      // The first error matters more. The server rolls back the transaction of a connection that has ended.
      this.destroy()
    }
  }

  /** Runs a text verbatim, which may have several statements: the server splits it. @throws DbError */
  async script(sql: string): Promise<void> {
    try {
      await this.#client.query(sql)
    } catch (thrown) {
      throw toDbError(reasonOf(thrown, this.#end))
    }
  }

  /** Makes the session as new, for the next migration. Nothing else must use this connection then. @throws DbError */
  async renew(): Promise<void> {
    // Other connections of a pooler share the sessions: each transaction sets what it needs.
    if (!this.keepsSession) return
    await this.script('DISCARD ALL')
    try {
      await setSession(this.#client, this.#access, this.#mark)
    } catch (thrown) {
      throw toDbError(reasonOf(thrown, this.#end))
    }
    this.#isGuarded = false
  }

  /** Fails the running statement when its time is over: the server does not answer, not even with its own timeout. */
  expire(nowMs: number): void {
    const execution = this.#execution
    if (execution === null || nowMs < this.#deadlineMs) return
    // First, so that the connection is not given to the next statement.
    this.destroy()
    execution.fail(
      new DbError(
        'timeout',
        `The database has not answered within ${this.#limitMs} ms; it is not known whether the statement took effect`,
      ),
    )
  }

  /** Prepares all statements again, because a table has changed. */
  forgetPrepared(): void {
    for (const digest of this.#prepared.clear()) this.#closed.push(`${digest}.${this.#mark}`)
  }

  /** Ends an idle connection in order, a busy one at once. */
  close(): void {
    if (this.#isDead) return
    if (this.isBusy) return this.destroy()
    this.#die()
    this.#client.end().catch(() => {}) // It is not used any more in any case.
  }

  destroy(): void {
    this.#client.connection.stream.destroy()
    this.#die()
  }

  #die(why: unknown = new Error('Connection terminated unexpectedly')): void {
    if (this.#isDead) return
    this.#isDead = true
    this.#end = why
    this.#onDead(this)
  }

  // ── for the execution ─────────────────────────────────────────────────────

  get keepsSession(): boolean {
    return this.#access.session.pooler === 'none'
  }

  get guard(): string | null {
    // A transaction has one session; a failed one refuses the look.
    return this.keepsSession && this.#isGuarded && this.isClean ? this.#mark : null
  }

  get session(): SessionRules | null {
    return this.keepsSession || !this.isClean ? null : this.#access.session
  }

  takeClosed(): readonly string[] {
    if (this.#closed.length === 0) return this.#closed
    const closed = this.#closed
    this.#closed = []
    return closed
  }

  preparedOf({ digest }: Statement): Prepared | undefined {
    return this.#prepared.get(digest)
  }

  nameOf({ digest }: Statement): string {
    return `${digest}.${this.#mark}`
  }

  prepared(statement: Statement, columns: Columns): void {
    const gone = this.#prepared.add(statement.digest, { name: this.nameOf(statement), columns })
    if (gone !== undefined) this.#closed.push(`${gone}.${this.#mark}`)
  }

  doubtful(statement: Statement): void {
    this.#closed.push(this.nameOf(statement))
  }

  settled(execution: Execution): void {
    this.#execution = null
    if (execution.statement === CHECK && execution.failure === null && this.keepsSession) {
      if (execution.rows[0]?.session !== this.#mark) execution.failure = sessionFault(this.#access)
    }
    if (execution.failure !== null && endsConnection(execution.failure)) this.destroy()
  }
}

/** Pause before a lost connection is opened again, milliseconds. */
const RETRY_MS = 1000
/** How long a statement may take on a connection of its own, milliseconds, and wait for a lock: less, so that the server ends it. */
const OWN_LIMIT_MS = 3000
const OWN_LOCK_MS = 2000
/** How often it is checked whether the running statement is late, milliseconds. */
const EXPIRE_MS = 250

/**
 * A connection of its own, beside those of the pool: for notifications, and for short statements that no other statement may hold up. It is opened when
 * it is used first, and again whenever it is lost.
 */
export class OwnConnection {
  readonly #access: Access
  #current: PostgresConnection | null = null
  #channel: { name: string; told: (payload: string) => void } | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = true

  constructor(access: Access) {
    this.#access = access
  }

  /**
   * Listens for notifications, where sessions are kept.
   * @param name of the channel, without special characters
   * @param told gets the payload of each notification; an empty one when the connection is there again
   */
  listen(name: string, told: (payload: string) => void): void {
    this.close()
    this.#channel = { name, told }
    this.#start()
  }

  /** Opens it, and returns it once it is open; null until then. */
  get idle(): PostgresConnection | null {
    if (this.#isClosed) this.#start()
    const connection = this.#current
    return connection?.isOpen === true && !connection.isBusy && !connection.isDead ? connection : null
  }

  close(): void {
    this.#isClosed = true
    this.#channel = null
    clearInterval(this.#timer)
    const connection = this.#current
    this.#current = null
    connection?.close()
  }

  #start(): void {
    this.#isClosed = false
    this.#timer = setInterval(() => this.#current?.expire(performance.now()), EXPIRE_MS).unref()
    this.#open()
  }

  #open(): void {
    const connection = new PostgresConnection(this.#access, OWN_LIMIT_MS, (dead) => this.#lost(dead))
    this.#current = connection
    this.#begin(connection).catch(() => connection.destroy())
  }

  async #begin(connection: PostgresConnection): Promise<void> {
    const channel = this.#channel
    if (channel !== null) connection.onNotification(channel.told)
    await connection.open(async () => {
      if (!connection.keepsSession) return
      await connection.script(`SET lock_timeout = ${OWN_LOCK_MS}`)
      if (channel !== null) await connection.script(`LISTEN ${channel.name}`)
    })
    channel?.told('')
  }

  #lost(connection: PostgresConnection): void {
    if (this.#current !== connection || this.#isClosed) return
    this.#current = null
    setTimeout(() => {
      if (this.#current === null && !this.#isClosed) this.#open()
    }, RETRY_MS).unref()
  }
}
