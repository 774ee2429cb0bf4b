// The records of the hub, their listeners, and the file that carries the last ones to the next process.

import { appendFile, readFileSync, rename } from 'node:fs'
import { promisify } from 'node:util'
import type { DeliveryFailure, EventRecord, FailureListener } from '../../contracts/event-bus.ts'
import { ancestorsBelow } from '../../core/causality/ancestors.ts'
import { causality } from '../../core/causality/context.ts'
import { messageOf } from '../../core/errors/description.ts'
import { type Clock, nextTurn, pause } from '../../core/schedule/clock.ts'
import { recordOf, TRACE_RECORDS, type Trace, TraceRing } from '../../runtime/events/trace-ring.ts'
import { added, tellAll } from '../../runtime/kernel/listeners.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { FailedDelivery, SubscriberThread } from './consumer.ts'

export type RecordLog = (level: 'WARNING' | 'ERROR', message: string, fields?: Record<string, unknown>) => void

/** @param origin thread of the record: it has told its own listeners already */
export type RecordListener = (record: EventRecord, origin: SubscriberThread | null) => void

/** The records of the hub and their listeners: the trace of published events, and the failures. */
export class Records {
  readonly #log: RecordLog
  readonly #traces = new TraceRing()
  #file: TraceFile | null = null
  readonly #listeners: RecordListener[] = []
  readonly #failureListeners: FailureListener[] = []

  constructor(log: RecordLog) {
    this.#log = log
  }

  /** @param subscribers plugins that receive the event */
  published(event: EventFrame, subscribers: readonly string[], origin: SubscriberThread | null): void {
    const trace = {
      id: event.id,
      parentId: event.parentId,
      event: event.event,
      emitter: event.emitter,
      subscribers,
      payloadKeys: event.payloadKeys,
      timestampMs: event.timestampMs,
      requestId: event.requestId,
      trace: event.trace,
    }
    if (this.#traces.push(trace)) this.#file?.add(trace)
    if (this.#listeners.length === 0) return
    const record = recordOf(trace)
    // A copy: a listener may remove itself during the call, as a stream client does when it is cut off.
    for (const listener of [...this.#listeners]) listener(record, origin)
  }

  /** A delivery failed for good. Events published by a listener have the failed event as their cause. */
  failed({ event, subscriber, error, attempts, trace }: FailedDelivery): void {
    const failure: DeliveryFailure = { event: event.event, event_id: event.id, subscriber, error, attempts }
    const cause = {
      eventId: event.id,
      ancestors: ancestorsBelow(event),
      requestId: event.requestId,
      trace,
      origin: null,
    }
    causality.run(cause, () =>
      tellAll(this.#failureListeners, failure, (thrown) =>
        this.#log('ERROR', `A failure listener threw; it is not reported again: ${messageOf(thrown)}`),
      ),
    )
  }

  /** Loads the history of the previous process, and writes a new one. */
  keepHistory(file: TraceFile): void {
    this.#traces.restore(file.read())
    this.#file = file
  }

  /** Resolves when the history is written. */
  async close(): Promise<void> {
    await this.#file?.close()
  }

  addListener(listener: RecordListener): () => void {
    return added(this.#listeners, listener)
  }

  addFailureListener(listener: FailureListener): () => void {
    return added(this.#failureListeners, listener)
  }

  history(): EventRecord[] {
    return this.#traces.records()
  }
}

const append = promisify(appendFile)
const renamed = promisify(rename)

/** A batch of this many traces means a busy process. */
const BUSY_TRACES = 50
/** Interval between two writes, milliseconds: short, so that a killed process has written what led to its end. */
const PAUSE_MS = 10
/** Interval between two writes of a busy process, milliseconds: at most 2,000 traces a second, the newest. */
const BUSY_PAUSE_MS = 250

/**
 * Keeps the last traces in a file: the next process shows under which events the leftover ones belong.
 * One line of JSON a trace, in two files that take turns: `path` and `path.old`. Only this user may read them. They are not synced: a power cut may take the last ones.
 * Writes never block the calling thread, and only one is in progress at a time.
 */
export class TraceFile {
  readonly #path: string
  readonly #onFault: (error: unknown) => void
  readonly #clock: Clock
  #lines = 0
  #waiting: Trace[] = []
  #writing: Promise<void> | null = null
  #isClosed = false

  /** @param onFault called once: nothing is written afterwards */
  constructor(path: string, clock: Clock, onFault: (error: unknown) => void) {
    this.#clock = clock
    this.#path = path
    this.#onFault = onFault
  }

  /** Traces of the previous process, oldest first, at most TRACE_RECORDS. Blocks: for the start. */
  read(): Trace[] {
    const traces = [...tracesIn(this.#oldPath), ...tracesIn(this.#path)]
    this.#lines = traces.length
    return traces.slice(-TRACE_RECORDS)
  }

  add(trace: Trace): void {
    if (this.#isClosed) return
    this.#waiting.push(trace)
    if (this.#waiting.length >= 2 * TRACE_RECORDS) this.#waiting = this.#waiting.slice(-TRACE_RECORDS)
    this.#writing ??= this.#write()
  }

  /** Resolves when all is written. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#writing
  }

  async #write(): Promise<void> {
    // Includes what the rest of this turn of the loop publishes.
    await nextTurn(this.#clock)
    try {
      while (this.#waiting.length > 0) {
        const traces = this.#waiting.slice(-TRACE_RECORDS)
        this.#waiting = []
        await this.#append(traces)
        if (!this.#isClosed) await pause(this.#clock, traces.length < BUSY_TRACES ? PAUSE_MS : BUSY_PAUSE_MS)
      }
    } catch (error) {
      this.#isClosed = true
      this.#waiting = []
      this.#onFault(error)
    } finally {
      this.#writing = null
    }
  }

  async #append(traces: readonly Trace[]): Promise<void> {
    if (this.#lines >= TRACE_RECORDS) {
      await renamed(this.#path, this.#oldPath).catch(ignoreMissing)
      this.#lines = 0
    }
    this.#lines += traces.length
    await append(this.#path, traces.map((trace) => `${JSON.stringify(trace)}\n`).join(''), { mode: 0o600 })
  }

  get #oldPath(): string {
    return `${this.#path}.old`
  }
}

/** A missing file has no traces. Skips a line cut off by the end of its process. */
function tracesIn(path: string): Trace[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return []
  }
  return text.split('\n').flatMap((line) => {
    try {
      const trace = JSON.parse(line) as Trace
      return isTrace(trace) ? [trace] : []
    } catch {
      return []
    }
  })
}

/** The file may come from another version or program. */
const isTrace = (value: Partial<Trace> | null): value is Trace =>
  typeof value?.id === 'string' &&
  typeof value.event === 'string' &&
  typeof value.emitter === 'string' &&
  Array.isArray(value.subscribers) &&
  typeof value.payloadKeys === 'string' &&
  typeof value.timestampMs === 'number' &&
  typeof value.trace === 'string'

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
