// Publishes the events of transactions: stored in them, delivered after them.
import type { LastStatement, Queryable, TransactionCompanion, Tx } from '../../contracts/db.ts'
import type { PublicationCheck } from '../../contracts/event-bus.ts'
import type { CancelFilter, CancelOptions, CancelTarget, Payload } from '../../contracts/events.ts'
import { type DbError, HeddleError } from '../../core/errors/catalogue.ts'
import { nextTurn } from '../../core/schedule/clock.ts'
import { settled } from '../../core/schedule/waiting.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { isMeant, isTree } from '../events/cancelling.ts'
import { encodePayload, publicationOf } from '../events/publication.ts'
import { priorityDigit } from '../events/shares.ts'
import { cancelRows } from './cancel-rows.ts'
import { findCaused } from './caused-rows.ts'
import {
  COPIES_MAX_BYTES,
  type Copies,
  type Insertion,
  storeError,
  type ThreadStore,
  tooLarge,
} from './thread-store.ts'
import { isUnique, type UniqueFrame } from './unique-rows.ts'

/** Parts of the thread used for the events of a transaction. */
export interface TransactionEventsOptions {
  /** The plugin. */
  emitter: string
  /** Null in the single thread of a plugin test: there the events are only delivered after the commit. */
  log: ThreadStore | null
  /** Null without the tool `event_bus`. */
  check: PublicationCheck | null
  checkCancel: ((what: unknown, options: unknown) => CancelTarget) | null
  /** Events were taken back, and the commit has succeeded. */
  cancelled(): void
  /** Whose an event is: see `EventFrame`. */
  sharesOf(event: string, json: string, priority: string): string
  /** Receives committed events. */
  deliver(frame: EventFrame): void
  /** A waiting row has got another due time, milliseconds since the epoch, and the commit has succeeded. */
  moved(event: string, dueMs: number): void
}

/** The events of one run of a transaction: gathered while it runs, stored by its last statements, delivered after its commit. */
export class TransactionEvents implements TransactionCompanion {
  readonly #options: TransactionEventsOptions
  readonly #frames: EventFrame[] = []
  /** Stored before its last statements: those with `unique`, and those published before them. */
  readonly #stored: EventFrame[] = []
  readonly #moves: { event: string; dueMs: number }[] = []
  own: Queryable | null = null
  /** It has taken events back that were stored before. */
  #hasCancelled = false
  /** Characters of their payloads. */
  #length = 0
  /** Number of the first ones whose groups were counted, and the bytes of their payloads, once for each group. */
  #counted = 0
  #bytes = 0
  #copies: Copies | null = null
  pending: Promise<unknown> | undefined = undefined
  /** From its last statements until its end. */
  #insertion: Insertion | null = null
  readonly #earlierInsertions: Insertion[] = []

  constructor(options: TransactionEventsOptions) {
    this.#options = options
  }

  extend(tx: Queryable): Tx {
    const events = this
    const { query, queryOne, execute } = tx
    this.own = tx
    return {
      query,
      queryOne,
      execute,
      // Not a separate function: the transpiler would name it anew with each transaction.
      publish(event, payload, options) {
        return events.#publish(event, payload, options)
      },
      cancel(what, options) {
        return events.#cancel(what, options)
      },
    }
  }

  /** Not async, which would cost one more promise: only the waiting path pays for it. */
  #publish(event: string, payload: object, options: unknown): Promise<string> {
    const { log, check } = this.#options
    try {
      if (check === null) {
        throw new HeddleError('TOOL_MISSING', 'tx.publish needs the tool event_bus, which is not installed')
      }
      if (log !== null && !log.memory.isOpen)
        return log.opened().then(async () => this.#add(event, await check(event, payload as Payload, options)))
      const accepted = check(event, payload as Payload, options)
      if (accepted instanceof Promise) return accepted.then((later) => this.#add(event, later))
      const added = this.#add(event, accepted)
      return added instanceof Promise ? added : settled(added)
    } catch (fault) {
      return Promise.reject(fault)
    }
  }

  async #cancel(what: CancelFilter, options: CancelOptions | undefined): Promise<number> {
    const { log, checkCancel } = this.#options
    if (checkCancel === null) {
      throw new HeddleError('TOOL_MISSING', 'tx.cancel needs the tool event_bus, which is not installed')
    }
    const meant = checkCancel(what, options)
    await this.pending
    let taken = 0
    for (let n = this.#frames.length - 1; n >= 0; n--) {
      const frame = this.#frames[n]!
      if (!isMeant(meant, frame)) continue
      this.#frames.splice(n, 1)
      this.#length -= frame.payload.length
      if (n < this.#counted) this.#counted--
      taken++
    }
    if (log === null) return taken
    if (!log.memory.isOpen) await log.opened()
    for (let n = this.#stored.length - 1; n >= 0; n--) if (isMeant(meant, this.#stored[n]!)) this.#stored.splice(n, 1)
    const caused =
      isTree(meant) && !log.isOnServer ? await findCaused(this.own!, meant.id, () => nextTurn(log.clock)) : []
    const { seqs, n } = await cancelRows(this.own!, log.isOnServer ? 'postgres' : 'sqlite', meant, caused)
    this.#hasCancelled ||= n > 0
    return taken + seqs.length
  }

  #add(event: string, accepted: Awaited<ReturnType<PublicationCheck>>): string | Promise<string> {
    const { json, keys } = encodePayload(event, accepted.payload)
    const frame = publicationOf(this.#options.emitter, event, json, keys, accepted.options)
    frame.shares = this.#options.sharesOf(event, json, priorityDigit(accepted.options))
    const { log } = this.#options
    log?.checkRoom(frame)
    if (log !== null && isUnique(frame)) {
      const stored = (this.pending ?? Promise.resolve()).then(() => this.#storeUnique(log, frame))
      this.pending = stored.catch(() => {})
      return stored
    }
    this.#frames.push(frame)
    this.#length += frame.payload.length
    if (!log?.isLarge(this.#length)) return frame.id
    const fits = (this.pending ?? Promise.resolve()).then(() => this.#requireFit(log, frame))
    this.pending = fits.catch(() => {})
    return fits
  }

  /** Whether there is one already is known only to the database: it is stored at once, behind those published before it. */
  async #storeUnique(log: ThreadStore, frame: UniqueFrame): Promise<string> {
    await this.#storeGathered(log)
    this.#length += frame.payload.length
    await this.#count(log, frame)
    const { id, isNew, movedToMs, insertion } = await log.insertUnique(this.own!, frame)
    this.#earlierInsertions.push(insertion)
    if (isNew) this.#stored.push(frame)
    if (movedToMs !== null) this.#moves.push({ event: frame.event, dueMs: movedToMs })
    return id
  }

  async #storeGathered(log: ThreadStore): Promise<void> {
    const frames = this.#frames.splice(0)
    if (frames.length === 0) return
    for (const frame of frames.slice(this.#counted)) await this.#count(log, frame)
    this.#counted = 0
    const insertion = log.insertion(frames)
    this.#earlierInsertions.push(insertion)
    for (const { sql, params } of insertion.statements) await this.own!.execute(sql, params)
    this.#stored.push(...frames)
  }

  /** @throws EVENT_PAYLOAD_TOO_LARGE */
  async #count(log: ThreadStore, frame: EventFrame): Promise<void> {
    this.#copies ??= log.copies(this.own!)
    const bytes = await this.#copies.of(frame)
    if (this.#bytes + bytes > COPIES_MAX_BYTES) throw tooLarge(frame, bytes, this.#bytes)
    this.#bytes += bytes
  }

  /** Counts all events so far, then each further one. */
  async #requireFit(log: ThreadStore, frame: EventFrame): Promise<string> {
    try {
      for (let each: EventFrame | null = null; each !== frame; this.#counted++) {
        each = this.#frames[this.#counted]!
        await this.#count(log, each)
      }
      return frame.id
    } catch (error) {
      this.#frames.splice(this.#frames.indexOf(frame), 1)
      this.#length -= frame.payload.length
      throw error
    }
  }

  get hasLastStatements(): boolean {
    return this.#frames.length > 0 && this.#options.log !== null
  }

  lastStatements(others: readonly TransactionCompanion[] = []): readonly LastStatement[] {
    const { log } = this.#options
    let frames = this.#frames
    // A database of another class has no such field, and throws: then each transaction commits by itself, and no event is left out.
    for (const other of others) frames = frames.concat((other as TransactionEvents).#frames)
    if (frames.length === 0 || log === null) return []
    this.#insertion = log.insertion(frames)
    return this.#insertion.statements
  }

  /** Errors of the database are unchanged: the transaction may be repeated. */
  refusal(error: DbError): Error {
    const { log } = this.#options
    if (log === null || error.kind === 'serialization') return error
    log.memory.refused()
    return error.isPassing ? error : storeError(error)
  }

  committed(): void {
    for (const frame of this.#stored) this.#options.deliver(frame)
    for (const frame of this.#frames) this.#options.deliver(frame)
    for (const { event, dueMs } of this.#moves) this.#options.moved(event, dueMs)
    if (this.#hasCancelled) this.#options.cancelled()
    this.#end()
  }

  rolledBack(): void {
    this.#end()
  }

  /** Delivered if the store turns out to have them. */
  unknown(): void {
    if (this.#frames.length + this.#stored.length + this.#moves.length > 0) this.#options.log?.memory.refused()
    this.#end()
  }

  #end(): void {
    if (this.#insertion !== null) this.#options.log?.ended(this.#insertion)
    this.#insertion = null
    for (const insertion of this.#earlierInsertions.splice(0)) this.#options.log?.ended(insertion)
  }
}
