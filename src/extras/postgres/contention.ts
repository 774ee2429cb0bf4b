// Transactions of one function that want the same rows: which of them go on, and which wait.
import { Fifo } from '../../core/collections/fifo.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { WAIT_MS } from '../../stores/sql/database.ts'
import { WriteLock } from '../../transport/memory/write-lock.ts'

/** A transaction is repeated for so long, its waits for its turn included, milliseconds. Then it is refused. */
export const CONTENDED_MS = 15_000
/** Most transactions of one function and thread that wait for their turn. Further ones are refused at once. */
export const LINE_MAX = 1024
/** A turn that takes longer does not keep the next one from beginning, milliseconds: it may wait for another process. More than the server takes to see a deadlock, and a rest after it. */
const TURN_MS = 2500
/** Milliseconds between two looks at what waits. */
const LOOK_MS = 100
/** After a conflict the limit of a function rises again by one in so many times as many successes as it lets run at a time. */
const CAUTION = 4
/** Successes after a deadlock until two of a function run at a time again. */
const WARY = 64
/** Functions that share one lock of the process: few, since two that share one only wait for each other. */
export const TURN_LOCKS = 16
export const TURN_LOCK_BYTES = 64

/**
 * Transactions of one function and thread that run at a time: one connection is left to other functions, though all of these wait for a row that somebody else has.
 * @param held connections that transactions of the thread may hold; of two none is left, since a transaction within another one needs both
 */
export const ofOneFunction = (held: number): number => (held > 2 ? held - 1 : held)

interface Waiter {
  readonly sinceMs: number
  readonly endMs: number
  grant(): void
  fail(error: DbError): void
}

/** For the caller: what was rolled back for other transactions is not run again. */
export const contended = (message: string, cause?: unknown): DbError =>
  new DbError('serialization', message, { cause, code: 'DB_CONTENDED' })

/**
 * The transactions of one function in this thread. As many run at a time as there are connections, while they do not conflict. Each
 * conflict halves that, down to one: of those that want the same rows all but one run for nothing. Each success raises it a little.
 *
 * Those that were rolled back go first, one at a time in the whole process.
 */
class Line {
  readonly #name: string
  readonly #max: number
  readonly #lock: WriteLock
  /** A fraction; rounded down it is how many may run. */
  #limit: number
  /** So many successes are awaited until the limit rises again. */
  #wary = 0
  #active = 0
  readonly #again = new Fifo<Waiter>()
  readonly #new = new Fifo<Waiter>()
  /** When one has begun or ended last. */
  #movedMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(name: string, max: number, lock: WriteLock) {
    this.#name = name
    this.#max = max
    this.#lock = lock
    this.#limit = max
  }

  /** Null: it may begin at once. */
  enter(isAgain: boolean, endMs: number): Promise<void> | null {
    if (this.#active < Math.floor(this.#limit) && (isAgain || this.#again.size + this.#new.size === 0)) {
      this.#active++
      this.#movedMs = performance.now()
      return null
    }
    if (this.#again.size + this.#new.size >= LINE_MAX)
      throw contended(`${LINE_MAX} transactions of ${this.#name} wait for their turn already`)
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref()
    return new Promise((resolve, reject) => {
      const waiter = { sinceMs: performance.now(), endMs, grant: resolve, fail: reject }
      if (isAgain) this.#again.push(waiter)
      else this.#new.push(waiter)
    })
  }

  leave(): void {
    this.#active--
    if (this.#again.size + this.#new.size > 0) this.#serve()
  }

  succeeded(): void {
    if (this.#wary > 0) this.#wary--
    else if (this.#limit < this.#max) this.#limit = Math.min(this.#max, this.#limit + 1 / (CAUTION * this.#limit))
  }

  conflicted(): void {
    this.#limit = Math.max(1, this.#limit / 2)
  }

  /** Two that want the same rows in another order cost each other a second: for a while one at a time runs in the whole process. */
  deadlocked(): void {
    this.#limit = 1
    this.#wary = WARY
  }

  /** Nobody repeats, and none may run beside. */
  get isWary(): boolean {
    return this.#wary > 0
  }

  /** Waits until no other thread repeats a transaction of this function, at most as long as a turn may take. */
  async alone(endMs: number): Promise<void> {
    await this.#lock.acquire(() => performance.now() >= endMs)
  }

  notAlone(): void {
    this.#lock.release()
  }

  close(error: DbError): void {
    for (const line of [this.#again, this.#new]) while (line.size > 0) line.shift()!.fail(error)
    this.#rest()
  }

  #serve(): void {
    while (this.#active < Math.floor(this.#limit) && this.#grant());
    this.#rest()
  }

  #grant(): boolean {
    const waiter = this.#again.shift() ?? this.#new.shift()
    if (waiter === undefined) return false
    this.#active++
    this.#movedMs = performance.now()
    waiter.grant()
    return true
  }

  #rest(): void {
    if (this.#again.size + this.#new.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look(): void {
    const nowMs = performance.now()
    for (const line of [this.#again, this.#new]) {
      for (let waiter = line.peek(); waiter !== undefined && this.#isOver(waiter, nowMs); waiter = line.peek())
        line.shift()!.fail(this.#refusal())
    }
    if (nowMs - this.#movedMs > TURN_MS && this.#active < this.#max) this.#grant()
    this.#serve()
  }

  #isOver({ sinceMs, endMs }: Waiter, nowMs: number): boolean {
    return nowMs >= endMs || nowMs - Math.max(sinceMs, this.#movedMs) > WAIT_MS
  }

  #refusal(): DbError {
    if (this.#limit < this.#max)
      return contended(`Transactions of ${this.#name} want the same rows, and this one did not get its turn in time`)
    return new DbError(
      'timeout',
      `Waited for a connection: all ${this.#max} that transactions of ${this.#name || 'one function'} may hold in this thread are in use (RDB_MAX_POOL is shared out over the threads)`,
    )
  }
}

/** The lines of a thread, by the name of the function: a route, a subscriber, a job. */
export class Lines {
  readonly #max: number
  readonly #locks: readonly WriteLock[]
  readonly #lines = new Map<string, Line>()

  /**
   * @param max transactions of one function that may run at a time
   * @param locks memory that the threads of the process share, TURN_LOCK_BYTES each
   */
  constructor(max: number, locks: readonly SharedArrayBuffer[]) {
    this.#max = max
    this.#locks = locks.map((memory) => new WriteLock(memory))
  }

  of(name: string): Line {
    const known = this.#lines.get(name)
    if (known !== undefined) return known
    let hash = 0
    for (let at = 0; at < name.length; at++) hash = (hash * 31 + name.charCodeAt(at)) | 0
    const line = new Line(name, this.#max, this.#locks[(hash >>> 0) % this.#locks.length]!)
    this.#lines.set(name, line)
    return line
  }

  /** What waits is refused. */
  close(): void {
    for (const line of this.#lines.values()) line.close(new DbError('unavailable', 'The database is closed'))
  }
}
