import { defaultResource, type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import type { Settings } from '../config/schema.ts'
import { RingConsumer } from '../shm/spsc-ring.ts'
import type { FromExporter, SpanSource } from './export-messages.ts'
import { readableSpan } from './readable-span.ts'
import { Receiver } from './receiver.ts'
import { resourceAttributes } from './resource.ts'
import { SpanQueue } from './span-queue.ts'
import { decodeSpan } from './span-record.ts'

/** How often the threads' spans are fetched, milliseconds: while there are many, and while there are few. */
const BUSY_LOOK_MS = 20
const IDLE_LOOK_MS = 50
/** Frames that one look takes of one thread. */
const FRAMES_PER_LOOK = 1024
/** Characters of the spans of one export: receivers take 4 MiB. */
const BATCH_MAX_LENGTH = 2 << 20
/**
 * Of a core it takes a fifth at most, about 25,000 spans a second: beyond, the oldest give way. Whoever makes more wants a sampler; requests do not
 * become slow for the sake of their spans.
 */
const REST_PER_WORK = 4
/** So many in one look of one thread are many. */
const MANY = 32

interface Source {
  readonly id: number
  readonly consumer: RingConsumer
  readonly resource: Resource
  /** What its thread says it has lost. */
  lost: number
}

/** Fetches the ended spans of all threads and exports them in batches, as the batch processor of OpenTelemetry's specification does. */
export class Exporter {
  readonly #settings: Settings
  readonly #tell: (message: FromExporter) => void
  readonly #sources = new Map<number, Source>()
  readonly #queue: SpanQueue<Source>
  readonly #receiver: Receiver
  #oldestMs = 0
  #exporting: Promise<void> | null = null
  #isFlushing = false
  #restUntilMs = 0
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
    await this.#receiver.open()
    this.#tell({ type: 'up' })
    this.#look()
  }

  add({ id, ring, thread }: SpanSource): void {
    const resource = defaultResource().merge(resourceFromAttributes(resourceAttributes(this.#settings, thread)))
    this.#sources.set(id, { id, consumer: new RingConsumer(ring), resource, lost: -1 })
  }

  remove(id: number): void {
    const source = this.#sources.get(id)
    if (source === undefined) return
    while (this.#fetch(source) > 0);
    this.#sources.delete(id)
  }

  readonly #look = (): void => {
    const found = this.#fetchAll()
    this.#exportDue()
    this.#tellDropped()
    this.#timer = setTimeout(this.#look, found >= MANY ? BUSY_LOOK_MS : IDLE_LOOK_MS)
  }

  /** @returns the most that one thread had */
  #fetchAll(): number {
    let most = 0
    for (const source of this.#sources.values()) most = Math.max(most, this.#fetch(source))
    return most
  }

  #fetch(source: Source): number {
    const { consumer } = source
    return consumer.drain((_, lost, at, length) => {
      if (this.#queue.size === 0) this.#oldestMs = Date.now()
      this.#queue.push(consumer.bytes.utf8Slice(at, at + length), source)
      // A thread that exports anew knows nothing of what was told before.
      if (source.lost >= 0) this.#queue.dropped += lost - source.lost
      source.lost = lost
    }, FRAMES_PER_LOOK)
  }

  #exportDue(): void {
    if (this.#exporting !== null || this.#queue.size === 0) return
    if (!this.#isFlushing && performance.now() < this.#restUntilMs) return
    const isFull = this.#queue.size >= this.#batchSize
    const { otelBspScheduleDelay } = this.#settings
    if (!isFull && !this.#isFlushing && Date.now() - this.#oldestMs < otelBspScheduleDelay) return
    this.#exporting = this.#exportBatch().finally(() => {
      this.#exporting = null
      this.#oldestMs = Date.now()
    })
  }

  /** A batch that the queue cannot hold would never be full. */
  get #batchSize(): number {
    return Math.min(this.#settings.otelBspMaxExportBatchSize, this.#settings.otelBspMaxQueueSize)
  }

  async #exportBatch(): Promise<void> {
    const batch = this.#queue.shift(this.#batchSize, BATCH_MAX_LENGTH)
    const begunMs = performance.now()
    const sending = this.#receiver.send(
      batch.map(({ text, source }) => readableSpan(decodeSpan(text), source.resource)),
    )
    // By now they are bytes: what is left is to wait.
    const endedMs = performance.now()
    this.#restUntilMs = endedMs + (endedMs - begunMs) * REST_PER_WORK
    const lost = await sending
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

  /** Exports all that has ended by now. @returns how many were left when the time was up */
  async flush(withinMs: number): Promise<number> {
    const deadlineMs = Date.now() + withinMs
    this.#isFlushing = true
    this.#failed = 0
    this.#receiver.hurry()
    clearTimeout(this.#timer)
    for (const source of this.#sources.values()) while (this.#fetch(source) > 0);
    const late = new Promise<'late'>((resolve) => setTimeout(resolve, withinMs, 'late'))
    for (;;) {
      this.#exportDue()
      if (this.#exporting === null) return this.#failed
      const outcome = await Promise.race([this.#exporting, late])
      // Whoever did not take this batch does not take the next one in time.
      if (outcome === 'late' || this.#failed > 0 || Date.now() > deadlineMs) return this.#queue.size + this.#failed
    }
  }
}
