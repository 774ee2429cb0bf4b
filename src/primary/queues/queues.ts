/// <reference lib="es2024.collection" />

// Subscribers as queues: how many deliveries wait for each, which they are, and what can be done about it.
import type {
  DeliveryPage,
  DeliveryPageOptions,
  HubServices,
  Queue,
  QueuedDelivery,
} from '../../contracts/event-bus.ts'
import type { Payload } from '../../contracts/events.ts'
import { DbError, HeddleError } from '../../core/errors/catalogue.ts'
import type { Clock, Timer } from '../../core/schedule/clock.ts'
import { lastSeqOf } from '../../runtime/event-store/cancel-rows.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'
import { readProgress } from '../../runtime/event-store/report-rows.ts'
import { splitKeys } from '../../runtime/events/publication.ts'
import type { Durable } from '../event-store/durable.ts'
import type { Consumer, Delivery } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { Pause } from '../events/pauses.ts'
import { InsertTimes } from './insert-times.ts'
import { type Counted, QueueRates, SAMPLE_MS } from './queue-rates.ts'
import {
  type ListedRow,
  makeDue,
  readPage,
  readQueues,
  readRows,
  type StoredQueue,
  type StoredQueues,
} from './queue-rows.ts'
import { type Running, readNotes, type Work, type WorkNote, writeNote } from './work-notes.ts'

/** An answer is given again for so long, milliseconds. */
const FRESH_MS = 1000
/** Interval at which a process notes what it has in work, milliseconds: while others share the database. */
const NOTE_MS = 2000
/** A note without a change is written again after this many intervals: it is valid for 15 s. */
const NOTE_AGAIN = 3
/** Running deliveries of a note: the oldest. */
const NOTED_MAX = 500
/** Default and maximum number of deliveries of a page. */
const PAGE = 100
const NOTHING_STORED: StoredQueues = { queues: [], counted: Number.POSITIVE_INFINITY, dead: [] }

export interface QueuesParts {
  hub: Hub
  clock: Clock
  /** REPLICA_ID. */
  replica: string
  /** Null where there is no event store. */
  durable: Pick<Durable, 'isOpen' | 'store' | 'moved'> | null
  /** Deliveries that a broker has for subscribers, beside those in hand. */
  backlog: () => Promise<readonly { readonly event: string; readonly group: string; readonly count: number }[]>
}

/** Names have no NUL. */
const idOf = ({ event, group }: { event: string; group: string }): string => `${event}\0${group}`

/** Deliveries of one subscriber in this process. */
interface Own {
  readonly event: string
  readonly group: string
  running: number
  /** In memory alone, or in a broker. */
  waiting: number
  later: number
  retrying: number
  /** Of those with a row, the ones that run, or wait for the next attempt in memory. */
  inHand: number
  oldestMs: number
}

/** It has a row. Temporary subscribers share theirs. */
const isStored = ({ event, consumer }: Delivery): boolean =>
  event.source !== null && !event.source.isBroker && !consumer.isTemporary

export class Queues implements Pick<HubServices, 'queues' | 'deliveries' | 'setPaused' | 'runNow'> {
  readonly #parts: QueuesParts
  readonly #rates = new QueueRates()
  readonly #inserts = new InsertTimes()
  #list: { readonly atMs: number; readonly queues: Promise<Queue[]> } | null = null
  #noted = { text: '', times: 0 }
  readonly #timers: Timer[] = []

  constructor(parts: QueuesParts) {
    this.#parts = parts
    const { clock } = parts
    this.#rates.add(clock.steadyMs(), new Map())
    this.#timers.push(
      clock.every(SAMPLE_MS, () => this.#rates.add(clock.steadyMs(), this.#counters())).unref(),
      clock.every(NOTE_MS, () => void this.#note().catch(() => {})).unref(),
    )
  }

  close(): void {
    for (const timer of this.#timers) this.#parts.clock.cancel(timer)
  }

  // ── this process ──────────────────────────────────────────────────────────

  #counters(): Map<string, Counted> {
    const { hub } = this.#parts
    return new Map([...hub.workloads()].map((consumer) => [idOf(consumer), this.#countedOf(consumer)]))
  }

  #countedOf({ event, ended, publishedBefore }: Consumer): Counted {
    return { published: this.#parts.hub.publishedOf(event) - publishedBefore, ended }
  }

  #own(): Map<string, Own> {
    const own = new Map<string, Own>()
    for (const { event, group } of this.#parts.hub.workloads())
      own.set(idOf({ event, group }), {
        event,
        group,
        running: 0,
        waiting: 0,
        later: 0,
        retrying: 0,
        inHand: 0,
        oldestMs: Number.POSITIVE_INFINITY,
      })
    for (const delivery of this.#parts.hub.deliveries()) {
      const { event, consumer, state, isBegun } = delivery
      const counts = own.get(idOf(consumer))
      if (counts === undefined) continue
      const isRow = isStored(delivery)
      if (isRow && (state === 'sent' || state === 'later')) counts.inHand++
      if (state === 'sent') counts.running++
      else if (state === 'later') counts[isBegun || isRow ? 'retrying' : 'later']++
      else if (!isRow) {
        counts.waiting++
        counts.oldestMs = Math.min(counts.oldestMs, event.timestampMs)
      }
    }
    return own
  }

  /** Oldest first. */
  #running(): Running[] {
    const { hub, clock, replica } = this.#parts
    const ahead = clock.nowMs() - clock.steadyMs()
    const running: Running[] = []
    for (const { event, consumer, state, attempt, startedMs, instance } of hub.deliveries())
      if (state === 'sent')
        running.push({
          event: event.event,
          group: consumer.group,
          id: event.id,
          seq: event.source === null ? 0 : event.seq,
          attempt,
          sinceMs: Math.round(startedMs + ahead),
          replica,
          lane: instance?.thread.laneIndex ?? null,
        })
    return running.sort((a, b) => a.sinceMs - b.sinceMs)
  }

  // ── other processes ───────────────────────────────────────────────────────

  get #database(): StoreDatabase | null {
    const { durable } = this.#parts
    return durable?.isOpen === true ? (durable.store?.database ?? null) : null
  }

  /** The others of a server; null: this process is alone. */
  get #member(): number | null {
    const members = this.#parts.durable?.store?.members ?? null
    return members === null || members.size < 2 ? null : members.lease.id
  }

  async #note(): Promise<void> {
    const [db, member] = [this.#database, this.#member]
    if (db === null || member === null) return
    const note: WorkNote = {
      work: [...this.#own().values()].flatMap(({ event, group, running, retrying, inHand }) => {
        const work = { event, group, running, retrying, inHand, ...this.#ratesOf({ event, group }) }
        return running + retrying + work.in + work.out === 0 ? [] : [work]
      }),
      running: this.#running().slice(0, NOTED_MAX),
    }
    const text = JSON.stringify(note)
    const isSame = text === this.#noted.text
    if (isSame && (note.work.length === 0 || ++this.#noted.times < NOTE_AGAIN)) return
    this.#noted = { text, times: 0 }
    await writeNote(db, member, note)
  }

  #ratesOf(of: { event: string; group: string }): { in: number; out: number } {
    const { hub } = this.#parts
    const consumer = hub.consumersOf(of.event).find(({ group }) => group === of.group)
    return consumer === undefined ? { in: 0, out: 0 } : this.#rates.of(idOf(of), this.#countedOf(consumer))
  }

  /** @returns what the others have noted */
  async #others(): Promise<WorkNote[]> {
    const [db, member] = [this.#database, this.#member]
    return db === null || member === null ? [] : readNotes(db, member)
  }

  // ── numbers ───────────────────────────────────────────────────────────────

  /** Called often, as by several pages and Prometheus, it looks once a second. */
  queues(): Promise<Queue[]> {
    const { clock } = this.#parts
    if (this.#list === null || clock.steadyMs() - this.#list.atMs >= FRESH_MS) {
      const queues = this.#look().catch((error) => {
        this.#list = null
        throw asStoreError(error)
      })
      this.#list = { atMs: clock.steadyMs(), queues }
    }
    return this.#list.queues
  }

  async #look(): Promise<Queue[]> {
    const { hub, backlog } = this.#parts
    const own = this.#own()
    const db = this.#database
    const running = this.#running()
    const others = await this.#others()
    const everywhere = [...running, ...others.flatMap((note) => note.running)]
    const seqs = everywhere.flatMap(({ seq }) => (seq > 0 ? [seq] : []))
    if (db !== null) this.#inserts.add(await lastSeqOf(db), this.#parts.clock.nowMs())
    const stored = db === null ? NOTHING_STORED : await readQueues(db, seqs)
    const parts: QueueSource = {
      own,
      stored: Map.groupBy(stored.queues, idOf),
      work: Map.groupBy(
        others.flatMap((note) => note.work),
        idOf,
      ),
      dead: new Map(stored.dead.map((each) => [idOf(each), each.count])),
      backlog: new Map((await backlog()).map((each) => [idOf(each), each.count])),
    }
    for (const place of hub.deadLetters.places()) parts.dead.set(idOf(place), (parts.dead.get(idOf(place)) ?? 0) + 1)
    const names = new Map(
      [...own.values(), ...stored.queues, ...hub.pauses.list(), ...stored.dead].map(({ event, group }) => [
        idOf({ event, group }),
        { event, group },
      ]),
    )
    const queues = [...names.values()].map((name) => this.#queueOf(name, parts, stored.counted))
    this.#estimate(queues)
    return queues.sort((a, b) =>
      a.event === b.event ? compare(a.subscriber, b.subscriber) : compare(a.event, b.event),
    )
  }

  #queueOf(name: { event: string; group: string }, source: QueueSource, counted: number): Queue {
    const { hub } = this.#parts
    const id = idOf(name)
    const own = source.own.get(id)
    const stored = source.stored.get(id) ?? []
    const { running = 0, retrying: inMemory = 0, inHand = 0 } = own ?? {}
    const work = [...(source.work.get(id) ?? []), { running, retrying: inMemory, inHand, ...this.#ratesOf(name) }]
    const more: Queue['more'] = []
    const count = (what: Queue['more'][number], of: (queue: StoredQueue) => number): number => {
      if (stored.some((queue) => of(queue) > counted)) more.push(what)
      return sum(stored, (queue) => Math.min(counted, of(queue)))
    }
    const ready = count('waiting', (queue) => queue.ready)
    const retrying = count('retrying', (queue) => queue.retrying)
    const due = count('later', (queue) => queue.due)
    const pause = hub.pauses.of(name.event, name.group)
    const oldest = [
      own?.oldestMs ?? Number.POSITIVE_INFINITY,
      ...stored.map(({ oldest: first }) => (first === null ? Number.POSITIVE_INFINITY : this.#sinceMs(first))),
    ]
    const oldestMs = Math.min(...oldest)
    return {
      event: name.event,
      subscriber: name.group,
      subscribed: own !== undefined || stored.some(({ isElsewhere }) => isElsewhere),
      paused: pause === undefined ? null : new Date(pause.sinceMs).toISOString(),
      waiting:
        (more.includes('waiting') ? ready : Math.max(0, ready - sum(work, (each) => each.inHand))) +
        (own?.waiting ?? 0) +
        (source.backlog.get(id) ?? 0),
      running: sum(work, (each) => each.running),
      later: Math.max(0, due - retrying) + (own?.later ?? 0),
      retrying: retrying + sum(work, (each) => each.retrying),
      blocked_keys:
        count('blocked_keys', (queue) => queue.blockedKeys) + hub.blockedKeys.countOf(name.event, name.group),
      dead: source.dead.get(id) ?? 0,
      more,
      waiting_estimate: null,
      oldest_at: oldestMs === Number.POSITIVE_INFINITY ? null : new Date(oldestMs).toISOString(),
      in_per_minute: sum(work, (each) => each.in),
      out_per_minute: sum(work, (each) => each.out),
      empty_in_ms: null,
    }
  }

  /** A delayed event waits since it got its number. */
  #sinceMs({ id, seq }: { id: string; seq: number }): number {
    return Math.max(publishedMs(id), this.#inserts.notBefore(seq))
  }

  /** Of one queue that is longer than was counted, the number of all rows tells the length. */
  #estimate(queues: Queue[]): void {
    const long = queues.filter(({ more }) => more.length > 0)
    const [only] = long
    const rows = this.#parts.durable?.store?.rows ?? 0
    if (long.length === 1 && only!.more.join() === 'waiting') {
      const others = sum(
        queues,
        (queue) => (queue === only ? 0 : queue.waiting) + queue.running + queue.later + queue.retrying,
      )
      only!.waiting_estimate = Math.max(only!.waiting, rows - others)
    }
    for (const queue of queues) {
      const waiting = queue.more.includes('waiting') ? queue.waiting_estimate : queue.waiting
      const perMinute = queue.out_per_minute - queue.in_per_minute
      if (waiting === 0) queue.empty_in_ms = 0
      else if (waiting !== null && perMinute > 0) queue.empty_in_ms = Math.round((waiting / perMinute) * 60_000)
    }
  }

  // ── deliveries ────────────────────────────────────────────────────────────

  async deliveries(wanted: DeliveryPageOptions): Promise<DeliveryPage> {
    try {
      return await this.#page(wanted)
    } catch (error) {
      throw asStoreError(error)
    }
  }

  async #page(wanted: DeliveryPageOptions): Promise<DeliveryPage> {
    const { event, subscriber, id, state, limit = PAGE, after = '' } = wanted
    if (state === undefined) {
      // An id alone finds it wherever it is.
      for (const each of id === undefined ? [] : (['running', 'later'] as const)) {
        const page = await this.#page({ ...wanted, state: each })
        if (page.deliveries.length > 0) return page
      }
      return this.#page({ ...wanted, state: 'waiting' })
    }
    const db = this.#database
    const running = [...this.#running(), ...(await this.#others()).flatMap((note) => note.running)].filter(
      (each) => each.event === event && each.group === subscriber,
    )
    if (id !== undefined) await this.#parts.durable?.store?.wantIndex()
    if (state === 'running') return this.#runningPage(wanted, running, limit)
    const seqs = running.flatMap(({ seq }) => (seq > 0 ? [seq] : []))
    const isInMemory = after.startsWith('m')
    const page =
      db === null || isInMemory
        ? { rows: [], next: null }
        : await readPage(db, { ...wanted, state, limit, running: seqs })
    const deliveries = page.rows.map(({ delivery, payload }) => withPayload(delivery, payload, wanted))
    if (page.next !== null) return { deliveries, next: page.next }
    // Those in memory alone follow.
    const own = this.#inMemory(wanted, state)
    const from = isInMemory ? own.findIndex((each) => each.id === after.slice(1)) + 1 : 0
    const rest = own.slice(from, from + limit - deliveries.length)
    const all = [...deliveries, ...rest]
    const isEnd = from + rest.length >= own.length
    return { deliveries: all, next: isEnd ? null : `m${rest.at(-1)?.id ?? ''}` }
  }

  #inMemory(wanted: DeliveryPageOptions, state: QueuedDelivery['state']): QueuedDelivery[] {
    const found: QueuedDelivery[] = []
    for (const delivery of this.#parts.hub.deliveries()) {
      const { event, consumer } = delivery
      if (isStored(delivery) || consumer.group !== wanted.subscriber || event.event !== wanted.event) continue
      const shown = this.#shown(delivery)
      const payload = Buffer.from(event.payload, 'latin1').toString()
      if ((LISTED_WITH[shown.state] ?? shown.state) !== state && shown.state !== state) continue
      if (!isWanted(shown, payload, wanted)) continue
      found.push(withPayload(shown, payload, wanted))
    }
    return found
  }

  #shown({ event, consumer, state, attempt, error, isBegun }: Delivery): QueuedDelivery {
    const isBlocked =
      event.key !== null &&
      this.#parts.hub.blockedKeys.find({ event: event.event, group: consumer.group, key: event.key }) !== undefined
    return {
      id: event.id,
      parent_id: event.parentId,
      event: event.event,
      emitter: event.emitter,
      payload_keys: splitKeys(event.payloadKeys),
      timestamp: new Date(event.timestampMs).toISOString(),
      request_id: event.requestId,
      subscriber: consumer.group,
      state:
        state === 'sent'
          ? 'running'
          : state === 'later'
            ? isBegun
              ? 'retrying'
              : 'later'
            : isBlocked
              ? 'blocked'
              : 'waiting',
      key: event.key,
      attempt,
      ...(error === '' ? {} : { error }),
    }
  }

  /** The oldest first, without pages: of other processes 500 each are known. */
  async #runningPage(wanted: DeliveryPageOptions, running: readonly Running[], limit: number): Promise<DeliveryPage> {
    const db = this.#database
    const some = running.toSorted((a, b) => a.sinceMs - b.sinceMs)
    const rows = new Map<number, ListedRow>()
    if (db !== null)
      for (const row of await readRows(
        db,
        some.flatMap(({ seq }) => (seq > 0 ? [seq] : [])),
        wanted.subscriber,
      ))
        rows.set(row.seq, row)
    const own = new Map(this.#inMemory({ ...wanted, payloads: true }, 'running').map((each) => [each.id, each]))
    const deliveries: QueuedDelivery[] = []
    for (const { id, seq, attempt, sinceMs, replica, lane } of some) {
      const row = rows.get(seq)
      const delivery = row?.delivery ?? own.get(id)
      // It has ended meanwhile.
      if (delivery === undefined) continue
      const payload = row?.payload ?? JSON.stringify(delivery.payload)
      if (!isWanted(delivery, payload, wanted)) continue
      const { payload: _, at: __, ...shown } = delivery
      const since = new Date(sinceMs).toISOString()
      deliveries.push(
        withPayload({ ...shown, state: 'running', attempt, running: { since, replica, lane } }, payload, wanted),
      )
      if (deliveries.length === limit) break
    }
    if (db !== null && deliveries.length > 0) await addProgress(db, deliveries)
    return { deliveries, next: null }
  }

  // ── what can be done ──────────────────────────────────────────────────────

  async setPaused(event: string, subscriber: string | null, isPaused: boolean): Promise<number> {
    try {
      return await this.#setPaused(event, subscriber, isPaused)
    } catch (error) {
      throw asStoreError(error)
    } finally {
      this.#list = null
    }
  }

  async #setPaused(event: string, subscriber: string | null, isPaused: boolean): Promise<number> {
    const { hub, durable, clock } = this.#parts
    const store = durable?.store ?? null
    if (store !== null && !durable!.isOpen)
      throw new HeddleError('EVENT_BUS_UNAVAILABLE', 'A pause is kept in the event store, which is not open')
    // Others may have paused or resumed some, and a subscriber may have come, a moment ago.
    await store?.pauses.load()
    this.#list = null
    const known = isPaused
      ? (await this.queues()).map((queue) => ({ event: queue.event, group: queue.subscriber }))
      : hub.pauses.list()
    const meant = known.filter(
      (each) =>
        each.event === event &&
        (subscriber === null || each.group === subscriber) &&
        hub.pauses.has(each.event, each.group) !== isPaused,
    )
    if (meant.length === 0) return 0
    const changed: Pause[] = meant.map(({ event: name, group }) => ({ event: name, group, sinceMs: clock.nowMs() }))
    if (store !== null) await store.pauses.change(changed, isPaused)
    else {
      const ids = new Set(changed.map(idOf))
      hub.setPauses([...hub.pauses.list().filter((pause) => !ids.has(idOf(pause))), ...(isPaused ? changed : [])])
    }
    return changed.length
  }

  async runNow(id: string, subscriber: string | null): Promise<number> {
    const { hub, durable } = this.#parts
    const db = this.#database
    this.#list = null
    const isMeant = ({ event, consumer }: Delivery): boolean =>
      event.id === id && (subscriber === null || consumer.group === subscriber)
    let seqs: number[] = []
    if (db !== null) {
      await durable!.store!.wantIndex()
      try {
        seqs = await makeDue(db, id, subscriber)
      } catch (error) {
        throw asStoreError(error)
      }
    }
    const inHand = hub.runNow(isMeant)
    if (seqs.length > 0) durable!.store!.dueNow(id, subscriber)
    return Math.max(seqs.length, inHand)
  }
}

/** What a list has beside its own state. */
const LISTED_WITH: Partial<Record<QueuedDelivery['state'], QueuedDelivery['state']>> = {
  blocked: 'waiting',
  retrying: 'later',
}

function isWanted({ id, key }: QueuedDelivery, payload: string, wanted: DeliveryPageOptions): boolean {
  if (wanted.id !== undefined && id !== wanted.id) return false
  if (wanted.key !== undefined && key !== wanted.key) return false
  return wanted.search === undefined || payload.includes(wanted.search)
}

function withPayload(delivery: QueuedDelivery, json: string, { payloads }: DeliveryPageOptions): QueuedDelivery {
  if (payloads !== true) return delivery
  try {
    return { ...delivery, payload: JSON.parse(json) as Payload }
  } catch {
    // Others have written the row.
    return delivery
  }
}

/** How far the handlers have told they are. */
async function addProgress(db: StoreDatabase, deliveries: readonly QueuedDelivery[]): Promise<void> {
  const { subscriber } = deliveries[0]!
  const progress = await readProgress(
    db,
    subscriber,
    deliveries.map(({ id }) => id),
  )
  for (const { id, attempt, running } of deliveries) {
    const told = progress.get(id)
    if (running !== undefined && told?.attempt === attempt) Object.assign(running, told.progress)
  }
}

interface QueueSource {
  readonly own: ReadonlyMap<string, Own>
  readonly stored: ReadonlyMap<string, StoredQueue[]>
  readonly work: ReadonlyMap<string, Work[]>
  readonly dead: Map<string, number>
  readonly backlog: ReadonlyMap<string, number>
}

const asStoreError = (error: unknown): unknown =>
  error instanceof DbError
    ? new HeddleError('EVENT_BUS_UNAVAILABLE', `The event store does not answer: ${error.message}`)
    : error

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function sum<T>(of: readonly T[], value: (each: T) => number): number {
  return of.reduce((total, each) => total + value(each), 0)
}

/** An event's id is `evt_` and a UUID of version 7, which begins with its time. */
const publishedMs = (id: string): number => Number.parseInt(id.slice(4, 16), 16) || 0
