/** Fetches the ended spans of all threads and exports them in batches, like the batch processor of OpenTelemetry's specification. */
import { hostname } from 'node:os'
import { type Attributes, diag } from '@opentelemetry/api'
import { parseKeyPairsIntoRecord } from '@opentelemetry/core'
import { defaultResource, type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import { Fifo } from '../core/collections/fifo.ts'
import type { Settings } from '../core/config/schema.ts'
import { RecordReader } from '../recording/ring.ts'
import type { ThreadRing } from '../recording/side-thread.ts'
import type { RingsReader } from '../recording/side-thread-entry.ts'
import { letGo } from '../transport/memory/garbage.ts'
import { Receiver } from './receiver.ts'
import { readableSpan } from './span-record.ts'

/** Milliseconds between two fetches of the threads' spans: while there are many, and while there are few. */
const BUSY_LOOK_MS = 20
const IDLE_LOOK_MS = 100
/** Most frames that are taken from one thread at a time. */
const FRAMES_PER_LOOK = 4096
/** Most characters of spans in one export, as JSON, which is longer than what is sent: receivers take 4 MiB. */
const BATCH_MAX_LENGTH = 3 << 20
/** Most characters of all spans that wait: some 100,000 ordinary ones. */
const QUEUE_MAX_LENGTH = 64 << 20
/** A ring that is fuller than this drops its oldest spans, because its thread would soon drop its newest ones; and so full it is then. */
const HIGH_WATER = 1 / 2
const LOW_WATER = 1 / 4
/**
 * The thread rests so many times as long as it worked, so it takes a fifth of a core, and what it waits for a core counts as work. While a
 * batch waits it does not rest, so that it is not late for long. Only if there are more spans than it can export, the oldest are dropped,
 * and it rests again: tracing must not slow requests down, and a sampler helps.
 */
const REST_PER_WORK = 4
/** Longest rest. The first exports take long, because their code is not compiled yet, and spans that wait meanwhile fill the rings. */
const REST_MAX_MS = 100
/** From so many spans of one thread in one fetch on, the next fetch comes soon. */
const MANY = 32
/** While an export is under way spans are left in the rings, but only for so long. */
const PATIENCE_MS = 250
/** A flush waits so many turns, of so many milliseconds, for the answer to one export. Without a core no turn comes: that is not the receiver's fault. */
const FLUSH_TURNS = 30
const FLUSH_TURN_MS = 100

/** How long this thread has worked, or waited for a core with work to do. */
const activeMs = (): number => performance.eventLoopUtilization().active

/** The ring of a thread, and what all of its spans have in common. */
interface Source {
  readonly reader: RecordReader
  readonly resource: Resource
}

/** An ended span that waits for its export. */
interface WaitingSpan {
  readonly json: string
  readonly source: Source
}

/** What it tells the primary. */
export type ExportNews =
  /** Spans could not be exported. */
  | { type: 'trouble'; why: string; lost: number }
  /** Spans can be exported again. */
  | { type: 'recovered'; lost: number }
  /** Spans were dropped for newer ones, or because there was no room. */
  | { type: 'dropped'; count: number }

export class Exporter implements RingsReader {
  readonly #settings: Settings
  readonly #tell: (message: ExportNews) => void
  readonly #sources = new Map<number, Source>()
  #queue = new Fifo<WaitingSpan>()
  #queueLength = 0
  /** Spans that were dropped since it was told. */
  #dropped = 0
  /** When one was dropped last. */
  #droppedMs = 0
  readonly #receiver: Receiver
  #oldestMs = 0
  #exporting: Promise<void> | null = null
  #isFlushing = false
  #isHurried = false
  #restUntilMs = 0
  #patientUntilMs = 0
  /** Since the flush began. */
  #failed = 0
  #inTrouble = false
  /** Since the trouble began. */
  #lost = 0
  #timer: NodeJS.Timeout | undefined

  constructor(settings: Settings, tell: (message: ExportNews) => void) {
    this.#settings = settings
    this.#tell = tell
    this.#receiver = new Receiver(settings, (why, lost) => {
      this.#inTrouble = true
      this.#lost += lost
      tell({ type: 'trouble', why, lost })
    })
  }

  start(): void {
    this.#receiver.open()
    this.#look()
  }

  add({ id, ring, thread }: ThreadRing): void {
    const own = resourceFromAttributes(resourceAttributes(this.#settings, thread))
    this.#sources.set(id, { reader: new RecordReader(ring), resource: defaultResource().merge(own) })
  }

  remove(id: number): void {
    const source = this.#sources.get(id)
    if (source === undefined) return
    while (this.#fetch(source, FRAMES_PER_LOOK) > 0);
    this.#sources.delete(id)
    letGo(source.reader.memory)
  }

  readonly #look = (): void => {
    const found = this.#fetchAll()
    this.#exportDue()
    this.#tellDropped()
    this.#lookIn(found >= MANY || this.#isBatchFull ? BUSY_LOOK_MS : IDLE_LOOK_MS)
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer)
    if (this.#isFlushing) return
    const restMs = this.#restUntilMs - performance.now()
    // A full batch is sent as soon as the rest is over.
    const isDueThen = this.#exporting === null && this.#isBatchFull
    this.#timer = setTimeout(this.#look, isDueThen && !this.#isHurried ? Math.max(1, Math.ceil(restMs)) : ms)
  }

  /** Moves spans of one thread into the queue. When it is full the oldest are dropped: people look for what has just happened. @returns how many */
  #fetch(source: Source, max: number): number {
    const found = source.reader.read(max, (json) => {
      if (this.#queue.size === 0) this.#oldestMs = Date.now()
      this.#queue.push({ json, source })
      this.#queueLength += json.length
      while (this.#queue.size > this.#settings.otelBspMaxQueueSize || this.#queueLength > QUEUE_MAX_LENGTH) {
        this.#queueLength -= this.#queue.shift()!.json.length
        this.#dropped++
      }
    })
    this.#dropped += source.reader.takeLost()
    return found
  }

  /**
   * Fetches spans. While an export is under way spans stay in their rings, so that those which must be dropped were not copied for nothing.
   * Otherwise all are fetched and wait in the queue.
   * @returns the largest number that one thread had
   */
  #fetchAll(): number {
    const areTaken = this.#isFlushing || performance.now() < this.#patientUntilMs
    let most = 0
    for (const source of this.#sources.values()) {
      if (source.reader.fill > HIGH_WATER && areTaken && !this.#isFlushing) {
        // The oldest spans are in the queue.
        this.#dropped += this.#queue.size
        this.#queue = new Fifo()
        this.#queueLength = 0
        source.reader.skipTo(LOW_WATER)
      }
      const max = areTaken ? Math.ceil(this.#room / this.#sources.size) : FRAMES_PER_LOOK
      most = Math.max(most, this.#fetch(source, max))
    }
    return most
  }

  /** How many more spans the queue takes before it drops one. */
  get #room(): number {
    return this.#queueLength < QUEUE_MAX_LENGTH ? this.#settings.otelBspMaxQueueSize - this.#queue.size : 0
  }

  #exportDue(): void {
    if (this.#exporting !== null || this.#queue.size === 0) return
    if (!this.#isHurried) {
      if (performance.now() < this.#restUntilMs) return
      const { otelBspScheduleDelay } = this.#settings
      if (!this.#isBatchFull && Date.now() - this.#oldestMs < otelBspScheduleDelay) return
    }
    this.#exporting = this.#exportBatch().finally(() => {
      this.#exporting = null
      this.#oldestMs = Date.now()
      if (this.#isBatchFull) this.#lookIn(0)
    })
  }

  /** A batch that the queue cannot hold would never be full. */
  get #batchSize(): number {
    return Math.min(this.#settings.otelBspMaxExportBatchSize, this.#settings.otelBspMaxQueueSize)
  }

  get #isBatchFull(): boolean {
    return this.#queue.size >= this.#batchSize
  }

  async #exportBatch(): Promise<void> {
    const batch = this.#takeBatch()
    const workedMs = activeMs()
    const begunMs = performance.now()
    this.#patientUntilMs = begunMs + PATIENCE_MS
    const lost = await this.#receiver.send(batch.map(({ json, source }) => readableSpan(json, source.resource)))
    this.#fetchAll()
    this.#tellDropped()
    const restPerWork = this.#isBatchFull && this.#droppedMs < begunMs ? 0 : REST_PER_WORK
    // The time in which it waits for the answer counts as rest.
    this.#restUntilMs = begunMs + Math.min(REST_MAX_MS, (activeMs() - workedMs) * (1 + restPerWork))
    this.#failed += lost
    if (lost > 0 || !this.#inTrouble) return
    this.#inTrouble = false
    this.#tell({ type: 'recovered', lost: this.#lost })
    this.#lost = 0
  }

  /** Takes the oldest spans out of the queue. */
  #takeBatch(): WaitingSpan[] {
    const batch: WaitingSpan[] = []
    for (let length = 0; batch.length < this.#batchSize && this.#queue.size > 0; ) {
      length += this.#queue.peek()!.json.length
      if (length > BATCH_MAX_LENGTH && batch.length > 0) break
      batch.push(this.#queue.shift()!)
    }
    for (const { json } of batch) this.#queueLength -= json.length
    return batch
  }

  #tellDropped(): void {
    if (this.#dropped === 0) return
    this.#droppedMs = performance.now()
    if (this.#inTrouble) this.#lost += this.#dropped
    this.#tell({ type: 'dropped', count: this.#dropped })
    this.#dropped = 0
  }

  /** From now on it does not rest, and no span waits for others: the process is about to end. */
  hurry(): void {
    this.#isHurried = true
    this.#lookIn(0)
  }

  /** Exports all spans that have ended, as long as the receiver takes them. @returns how many were left when the time was up */
  async flush(withinMs: number): Promise<number> {
    const deadlineMs = performance.now() + withinMs
    this.#isHurried = true
    this.#isFlushing = true
    this.#failed = 0
    this.#receiver.hurry()
    clearTimeout(this.#timer)
    const late = new Promise<'late'>((resolve) => setTimeout(resolve, withinMs, 'late').unref())
    for (;;) {
      this.#fetchAll()
      this.#exportDue()
      if (this.#exporting === null) return this.#failed
      const outcome = await inTurns(FLUSH_TURNS, this.#exporting, late)
      // A receiver that did not take this batch will not take the next one in time.
      if (outcome === 'late' || this.#failed > 0 || performance.now() > deadlineMs)
        return this.#countLeft() + this.#failed
    }
  }

  #countLeft(): number {
    let left = this.#queue.size
    for (const source of this.#sources.values()) left += source.reader.read(Number.POSITIVE_INFINITY, () => {})
    return left
  }
}

/** What comes first. A thread that gets no core has no turns either. */
async function inTurns<Outcome>(count: number, ...outcomes: Promise<Outcome | 'late'>[]): Promise<Outcome | 'late'> {
  let left = count
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<'late'>((resolve) => {
    timer = setInterval(() => --left === 0 && resolve('late'), FLUSH_TURN_MS)
  })
  const outcome = await Promise.race([...outcomes, over])
  clearInterval(timer)
  return outcome
}

/** The value of OTEL_SERVICE_NAME when it is unset. */
const UNNAMED = 'service'

/** The attributes that all spans of a thread have in common. They override those of OTEL_RESOURCE_ATTRIBUTES, except for `host.name` and an unset service name. */
function resourceAttributes(settings: Settings, thread: 'primary' | number): Attributes {
  const { otelServiceName, otelResourceAttributes, replicaId } = settings
  const given = parsed(otelResourceAttributes)
  return {
    'host.name': hostname(),
    ...given,
    'service.name': otelServiceName === UNNAMED ? (given['service.name'] ?? UNNAMED) : otelServiceName,
    'service.instance.id': replicaId,
    'process.pid': process.pid,
    'process.runtime.name': 'nodejs',
    'process.runtime.version': process.versions.node,
    'heddle.replica': replicaId,
    'heddle.thread': thread === 'primary' ? 'primary' : `lane ${thread}`,
    ...(thread === 'primary' ? {} : { 'heddle.lane': thread }),
  }
}

function parsed(pairs: string | undefined): Attributes {
  try {
    return parseKeyPairsIntoRecord(pairs)
  } catch (error) {
    diag.warn(String(error))
    return {}
  }
}
