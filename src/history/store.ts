// What the history keeps: written, connected with what caused it, and deleted when it is old.
import type BetterSqlite3 from 'better-sqlite3'
import type { DeathPart, DeliveryPart, RequestPart, RequestSummary, WorkPart } from '../contracts/requests.ts'
import { timeOrderedId } from '../core/causality/ids.ts'
import type { Settings } from '../core/config/schema.ts'
import { isSecretName, SECRET } from '../core/schemas/secret-fields.ts'
import { openHistory } from './history-file.ts'

/** Milliseconds between two signs of life in the file, and between two looks at its size. */
const SEEN_EVERY_MS = 1000
/** A process that has given no sign of life for so long has died. Milliseconds. */
export const DEAD_MS = 5 * SEEN_EVERY_MS
const TRIM_EVERY_MS = 30_000
const HOUR_MS = 3_600_000
const MIB = 2 ** 20
/** Where the file is too large, this part of the requests goes. */
const TRIMMED_PART = 0.1
/** Kinds of failures whose beginning is known: of more the oldest are forgotten. */
export const FAILURE_KINDS_MAX = 10_000
/** Characters of a message that tell its kind. */
const KIND_CHARS = 200

/** What the history's thread is started with. */
export interface StoreInit {
  readonly settings: Settings
  /** Process id of the guardian that has started this process; null without one. */
  readonly guardian: number | null
}

type StoreSettings = Pick<Settings, 'historyPath' | 'historyMaxMb' | 'historyHours' | 'replicaId' | 'heddleRelease'>

/** The file of the history. Several processes may share one. */
export class HistoryStore {
  readonly database: BetterSqlite3.Database
  readonly #settings: StoreSettings
  readonly #run = timeOrderedId()
  readonly #statements: ReturnType<typeof prepare>
  readonly #rootOf: (eventId: string) => string | null
  /** By the ids of requests that have not come yet. */
  readonly #users = new Map<string, string>()
  #seenMs = 0
  #trimmedMs = Date.now()

  constructor(settings: StoreSettings) {
    this.#settings = settings
    this.database = openHistory(settings.historyPath)
    this.#statements = prepare(this.database)
    this.#rootOf = rootFinder(this.database)
    const nowMs = Date.now()
    // Who has this name now: the process that had it before has ended. Its requests still tell its name and release.
    this.database
      .prepare('UPDATE run SET seen_ms = min(seen_ms, ?) WHERE replica = ?')
      .run(nowMs - DEAD_MS - 1, settings.replicaId)
    this.#tellAlive(nowMs)
  }

  write(entries: readonly HistoryEntry[]): void {
    const nowMs = Date.now()
    if (entries.length > 0) {
      this.database.transaction(() => {
        for (const entry of entries) this.#one(entry)
      })()
    }
    if (nowMs - this.#seenMs >= SEEN_EVERY_MS) this.#tellAlive(nowMs)
    if (nowMs - this.#trimmedMs >= TRIM_EVERY_MS) this.#trim(nowMs)
  }

  #tellAlive(nowMs: number): void {
    this.#seenMs = nowMs
    const { replicaId, heddleRelease = '' } = this.#settings
    this.#statements.seen.run(this.#run, replicaId, nowMs, nowMs, heddleRelease)
  }

  #one(entry: HistoryEntry): void {
    switch (entry.type) {
      case 'begun':
      case 'request':
        return this.#request(entry)
      case 'run':
        return this.#job(entry)
      case 'work':
        return this.#work(entry)
      case 'delivery':
        return this.#delivery(entry)
      case 'death':
        return this.#death(entry)
    }
  }

  #request(entry: BegunEntry | RequestEntry): void {
    const { id, clientId, atMs, method, path, route, plugin } = entry
    const { ms, status, lane } = entry.type === 'request' ? entry : NOT_ENDED
    const row = {
      id,
      client_id: clientId,
      at_ms: atMs,
      ms,
      status,
      method,
      path: shownPath(path, route),
      route,
      plugin,
      lane,
    }
    const failed = status !== null && status >= 500 ? 1 : 0
    this.#row({ ...row, kind: 'request', failed, user: this.#users.get(id) ?? null })
    this.#users.delete(id)
  }

  /** @param row of `request`; what is left out of it is not known */
  #row(row: Record<string, unknown>): void {
    this.#statements.request.run({ ...UNKNOWN, run: this.#run, ...row })
    this.#noteFailure(row.id)
  }

  /** Notes with which release its kind of failure began. The kind is known once the request itself has ended. */
  #noteFailure(id: unknown): void {
    const row = this.#statements.failure.get(id) as (FailedRow & { at_ms: number }) | undefined
    if (row !== undefined) this.#statements.failureKind.run(failureKindOf(row), row.at_ms, this.#run)
  }

  /** A handler ends before its request: what is told of the request may not be there yet. */
  #user(requestId: string, user: string): void {
    if (this.#statements.user.run(user, requestId).changes > 0) return
    if (this.#users.size >= USERS_MAX) this.#users.clear()
    this.#users.set(requestId, user)
  }

  #work(entry: WorkPart): void {
    const { kind, requestId, eventId, plugin, name, atMs, ms, error, thread } = entry
    if (kind === 'job') {
      const [job, lane] = [name.slice(plugin.length + 1), thread === 'primary' ? -1 : thread]
      const [user, message] = [entry.user ?? null, error?.message ?? null]
      this.#job({ id: requestId!, atMs, ms, plugin, name: job, lane, error: message, user })
    } else if (entry.user !== undefined && requestId !== null) this.#user(requestId, entry.user)
    const partId = this.#part(requestId, eventId, atMs, entry)
    for (const call of entry.calls) {
      if (call.eventId !== undefined) this.#statements.published.run(call.eventId, partId)
    }
    if (error !== undefined) this.#failed(requestId, eventId, `${name}: ${error.message}`, atMs)
  }

  #job({ id, atMs, ms, plugin, name, lane, error, user }: Omit<RunEntry, 'type'>): void {
    const failed = error === null ? 0 : 1
    this.#row({ id, kind: 'job', at_ms: atMs, ms, route: name, plugin, lane, failed, error, user })
  }

  #delivery(entry: DeliveryPart): void {
    const { requestId, eventId, atMs, isGivenUp, event, group } = entry
    this.#part(requestId, eventId, atMs, entry)
    if (isGivenUp) this.#failed(requestId, eventId, `${group} has given up on ${event}`, atMs)
  }

  #death(entry: DeathPart): void {
    const where = entry.line === null ? '' : ` at ${entry.line}`
    for (const id of entry.ids) {
      const [requestId, eventId] = id.startsWith('evt_') ? [null, id] : [id, null]
      this.#part(requestId, eventId, entry.atMs, entry)
      this.#failed(requestId, eventId, `Lane ${entry.lane} died: ${entry.message}${where}`, entry.atMs)
    }
  }

  #part(requestId: string | null, eventId: string | null, atMs: number, entry: RequestPart): number {
    const traceId = entry.type === 'work' ? (entry.traceId ?? null) : null
    const json = JSON.stringify(entry)
    return Number(this.#statements.part.run(requestId, eventId, atMs, json, this.#run, traceId).lastInsertRowid)
  }

  /** Marks the request, or the run of a job, that has caused it. */
  #failed(requestId: string | null, eventId: string | null, message: string, atMs: number): void {
    const id = eventId === null ? requestId : (this.#rootOf(eventId) ?? requestId)
    if (id === null) return
    // What the primary tells of the request comes later; in a sample it may not come at all.
    this.#statements.stub.run(id, id.startsWith('job_') ? 'job' : 'request', this.#run, atMs)
    this.#statements.failed.run(message, id)
    this.#noteFailure(id)
  }

  /** Deletes what is too old, and the oldest where the file is too large. */
  #trim(nowMs: number): void {
    this.#trimmedMs = nowMs
    const { database } = this
    const { historyHours, historyMaxMb } = this.#settings
    let beforeMs = nowMs - historyHours * HOUR_MS
    const bytes = database.pragma('page_count', { simple: true }) as number
    const free = database.pragma('freelist_count', { simple: true }) as number
    const size = database.pragma('page_size', { simple: true }) as number
    if ((bytes - free) * size > historyMaxMb * MIB) {
      const { n } = database.prepare('SELECT count(*) AS n FROM part').get() as { n: number }
      const edge = database
        .prepare('SELECT at_ms FROM part ORDER BY at_ms LIMIT 1 OFFSET ?')
        .get(Math.floor(n * TRIMMED_PART)) as { at_ms: number } | undefined
      beforeMs = Math.max(beforeMs, edge?.at_ms ?? beforeMs)
    }
    database.transaction(() => {
      database.prepare('DELETE FROM published WHERE part_id IN (SELECT id FROM part WHERE at_ms < ?)').run(beforeMs)
      database.prepare('DELETE FROM part WHERE at_ms < ?').run(beforeMs)
      database.prepare('DELETE FROM request WHERE at_ms < ?').run(beforeMs)
      database.prepare('DELETE FROM run WHERE seen_ms < ?').run(beforeMs)
      database.prepare('DELETE FROM failure WHERE last_ms < ?').run(beforeMs)
      database.prepare(FORGET_FAILURES).run(FAILURE_KINDS_MAX)
    })()
    database.pragma('incremental_vacuum')
  }

  close(): void {
    if (this.database.open) this.database.close()
  }
}

/** The path without the parameters whose names are those of secrets, as in `/reset/:token`. */
function shownPath(path: string, route: string): string {
  if (!route.includes(':')) return path
  const names = route.split('/')
  const parts = path.split('/')
  return parts
    .map((part, n) => (names[n]?.startsWith(':') && isSecretName(names[n].slice(1)) ? SECRET : part))
    .join('/')
}

/** What makes a failure one of its kind. */
type FailedRow = Pick<RequestSummary, 'kind' | 'method' | 'plugin' | 'route' | 'status' | 'error'>

/** What is the same for the same fault: numbers and ids in the message differ from one time to the next. */
export const failureKindOf = ({ kind, method, plugin, route, status, error }: FailedRow): string =>
  [kind, method, plugin, route, status, (error ?? '').replace(/[0-9a-f]{8,}|\d+/gi, '#').slice(0, KIND_CHARS)].join(' ')

/** Only where a run of another release began before is it known that the release brought the failure. */
const NOTE_FAILURE = `
INSERT INTO failure (kind, last_ms, began_with) VALUES (?, ?, (
  SELECT me.release FROM run AS me WHERE me.id = ? AND me.release <> ''
    AND EXISTS (SELECT 1 FROM run AS other WHERE other.release NOT IN ('', me.release) AND other.began_ms < me.began_ms)))
ON CONFLICT (kind) DO UPDATE SET last_ms = max(last_ms, excluded.last_ms)`
const FORGET_FAILURES =
  'DELETE FROM failure WHERE last_ms < (SELECT last_ms FROM failure ORDER BY last_ms DESC LIMIT 1 OFFSET ?)'

/** Of a request that is open. */
const NOT_ENDED = { ms: null, status: null, lane: null }
const UNKNOWN = { ...NOT_ENDED, client_id: null, method: '', path: '', error: null, user: null }

/** Users of requests that have not come yet; in a sample they may never come. */
const USERS_MAX = 1000

/** Longest chain of events that is followed back. */
const CHAIN_MAX = 100

/** What finds the request, or the run of a job, with which the chain of an event began: it gives null where that is not kept. */
export function rootFinder(database: BetterSqlite3.Database): (eventId: string) => string | null {
  const publisher = database.prepare(
    'SELECT part.request_id, part.event_id FROM published JOIN part ON part.id = part_id WHERE published.event_id = ?',
  )
  return (eventId) => {
    let at = eventId
    for (let step = 0; step < CHAIN_MAX; step++) {
      const found = publisher.get(at) as { request_id: string | null; event_id: string | null } | undefined
      if (found === undefined) return null
      // What an event has is the id that the client may have chosen.
      if (found.event_id === null) return found.request_id
      at = found.event_id
    }
    return null
  }
}

function prepare(database: BetterSqlite3.Database) {
  return {
    seen: database.prepare(
      'INSERT INTO run VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms',
    ),
    request: database.prepare(`
      INSERT INTO request (id, client_id, kind, run, at_ms, ms, status, method, path, route, plugin, lane, failed, error, user)
      VALUES (@id, @client_id, @kind, @run, @at_ms, @ms, @status, @method, @path, @route, @plugin, @lane, @failed, @error, @user)
      ON CONFLICT (id) DO UPDATE SET ms = coalesce(excluded.ms, ms), status = coalesce(excluded.status, status),
        client_id = excluded.client_id, at_ms = excluded.at_ms, method = excluded.method, path = excluded.path, route = excluded.route,
        plugin = excluded.plugin, lane = coalesce(excluded.lane, lane), failed = max(failed, excluded.failed),
        error = coalesce(error, excluded.error), user = coalesce(excluded.user, user)`),
    part: database.prepare(
      'INSERT INTO part (request_id, event_id, at_ms, json, run, trace_id) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    published: database.prepare('INSERT OR IGNORE INTO published VALUES (?, ?)'),
    failure: database.prepare(
      "SELECT kind, method, plugin, route, status, error, at_ms FROM request WHERE id = ? AND failed = 1 AND ms IS NOT NULL AND (kind = 'job' OR method <> '')",
    ),
    failureKind: database.prepare(NOTE_FAILURE),
    user: database.prepare('UPDATE request SET user = ? WHERE id = ?'),
    failed: database.prepare('UPDATE request SET failed = 1, error = coalesce(error, ?) WHERE id = ?'),
    stub: database.prepare(
      "INSERT OR IGNORE INTO request (id, kind, run, at_ms, method, path, route, plugin) VALUES (?, ?, ?, ?, '', '', '', '')",
    ),
  }
}

/**
 * What threads tell the history's thread. Each entry is one frame of JSON in the ring of its thread. Times are milliseconds since the epoch
 * with fractions, by one clock for all threads; durations are milliseconds.
 */

/** A request that is still open: of one that ends soon nothing is told before. */
interface BegunEntry {
  type: 'begun'
  id: string
  /** The id that its client has chosen. */
  clientId: string | null
  atMs: number
  method: string
  path: string
  /** Path template; empty where there is no such route. */
  route: string
  plugin: string
}

/** A request that has ended. */
interface RequestEntry extends Omit<BegunEntry, 'type'> {
  type: 'request'
  ms: number
  /** 0: the client was gone before there was an answer. */
  status: number
  /** -1: the primary itself. */
  lane: number
}

/** The run of a job that is open, or has ended. */
interface RunEntry {
  type: 'run'
  id: string
  atMs: number
  /** Null while it is open. */
  ms: number | null
  plugin: string
  name: string
  /** -1: the primary itself. */
  lane: number
  error: string | null
  /** Who asked for it. */
  user: string | null
}

export type HistoryEntry = BegunEntry | RequestEntry | RunEntry | RequestPart
