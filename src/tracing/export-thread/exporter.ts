import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources'
import type { Settings } from '../../core/config/schema.ts'
import { letGo } from '../../transport/memory/garbage.ts'
import type { FromExporter, ThreadRing } from '../export-messages.ts'
import { Receiver } from './receiver.ts'
import { resourceAttributes } from './resource.ts'
import { release } from './span-memory.ts'
import { type QueuedSpan, SpanQueue } from './span-queue.ts'
import { SpanSource } from './span-source.ts'

/** Milliseconds between two fetches of the threads' spans: while there are many, and while there are few. */
const BUSY_LOOK_MS = 20
const IDLE_LOOK_MS = 100
/** Most frames that are taken from one thread at a time. */
const FRAMES_PER_LOOK = 4096
/** Most bytes of spans in one export: receivers take 4 MiB. */
const BATCH_MAX_BYTES = 3 << 20
/**
 * The thread rests so many times as long as it worked: it takes at most a fifth of a core, and less where it has to wait for a core.
 * If there are more spans than that, the oldest are dropped: tracing must not slow requests down, and a sampler helps.
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

/** Fetches the ended spans of all threads and exports them in batches, like the batch processor of OpenTelemetry's specification. */
export class Exporter {
  readonly #settings: Settings
  readonly #tell: (message: FromExporter) => void
  readonly #sources = new Map<number, SpanSource>()
  readonly #queue: SpanQueue<SpanSource>
  readonly #receiver: Receiver
  #oldestMs = 0
  #exporting: Promise<void> | null = null
  #isFlushing = false
  #isHurried = false
  #opened: Promise<void> = Promise.resolve()
  #restUntilMs = 0
  #patientUntilMs = 0
  /** Since the flush began. */
  #failed = 0
  #inTrouble = false
  /** Since the trouble began. */
  #lost = 0
  #timer: NodeJS.Timeout | undefined

  constructor(settings: Settings, tell: (message: FromExporter) => void) {
    this.#settings = settings
    this.#tell = tell
    this.#queue = new SpanQueue(settings.otelBspMaxQueueSize)
    this.#receiver = new Receiver(settings, (why, lost) => {
      this.#inTrouble = true
      this.#lost += lost
      tell({ type: 'trouble', why, lost })
    })
  }

  async start(): Promise<void> {
    this.#opened = this.#receiver.open()
    await this.#opened
    this.#tell({ type: 'up' })
    this.#look()
  }

  add({ id, ring, thread }: ThreadRing): void {
    const own = resourceFromAttributes(resourceAttributes(this.#settings, thread))
    this.#sources.set(id, new SpanSource(ring, defaultResource().merge(own).attributes))
  }

  remove(id: number): void {
    const source = this.#sources.get(id)
    if (source === undefined) return
    while (source.fetch(FRAMES_PER_LOOK, this.#take) > 0);
    this.#queue.dropped += source.takeLost()
    this.#sources.delete(id)
    letGo(source.memory)
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

  readonly #take = (span: QueuedSpan<SpanSource>): void => {
    if (this.#queue.size === 0) this.#oldestMs = Date.now()
    this.#queue.push(span)
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
      if (source.isOverfull && areTaken && !this.#isFlushing) {
        // The oldest spans are in the queue.
        this.#queue.clear()
        source.makeRoom()
      }
      const max = areTaken ? Math.ceil(this.#queue.room / this.#sources.size) : FRAMES_PER_LOOK
      most = Math.max(most, source.fetch(max, this.#take))
      this.#queue.dropped += source.takeLost()
    }
    return most
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
    const batch = this.#queue.shift(this.#batchSize, BATCH_MAX_BYTES)
    const workedMs = activeMs()
    const begunMs = performance.now()
    this.#patientUntilMs = begunMs + PATIENCE_MS
    const lost = await this.#receiver.send(batch)
    for (const span of batch) release(span)
    // The time in which it waits for the answer counts as rest.
    this.#restUntilMs = begunMs + Math.min(REST_MAX_MS, (activeMs() - workedMs) * (1 + REST_PER_WORK))
    this.#failed += lost
    if (lost > 0 || !this.#inTrouble) return
    this.#inTrouble = false
    this.#tell({ type: 'recovered', lost: this.#lost })
    this.#lost = 0
  }

  #tellDropped(): void {
    if (this.#queue.dropped === 0) return
    if (this.#inTrouble) this.#lost += this.#queue.dropped
    this.#tell({ type: 'dropped', count: this.#queue.dropped })
    this.#queue.dropped = 0
  }

  /** From now on it does not rest, and no span waits for others: the process is about to end. */
  hurry(): void {
    this.#isHurried = true
    void this.#opened.then(() => this.#lookIn(0))
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
    // The gRPC client may still be loading when a process ends soon after its start.
    await Promise.race([this.#opened, late])
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
    for (const source of this.#sources.values()) left += source.fetch(Number.POSITIVE_INFINITY, () => {})
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
