import type { LogDetails, LogLevel, Tools } from '#heddle'
import { cut } from './excerpts.ts'
import type { LogEntry } from './frames.ts'

/** Records that are kept. */
const KEPT_MAX = 500
/** Fields of one record that are sent, and characters of one as JSON: a stack has several hundred. */
const FIELDS_MAX = 50
const FIELD_MAX_CHARS = 8000

interface Kept {
  n: number
  level: LogLevel
  message: string
  timestamp: string
  identity: string
  details: LogDetails
}

/** The last log records, kept also while no dashboard is open: one that is opened shows what has led to the present state. */
export class LogBacklog {
  readonly #kept: Kept[] = []
  readonly #listeners = new Set<(entry: LogEntry) => void>()
  readonly #stop: () => void
  #count = 0

  constructor(logger: Tools['logger']) {
    // Must not log: the record would come back to this sink.
    this.#stop = logger.addSink((level, message, timestamp, identity, details) => {
      const record = { n: ++this.#count, level, message, timestamp, identity, details }
      this.#kept.push(record)
      if (this.#kept.length > KEPT_MAX) this.#kept.shift()
      if (this.#listeners.size === 0) return
      const entry = entryOf(record)
      for (const listener of this.#listeners) listener(entry)
    })
  }

  /** Oldest first. */
  entries(): LogEntry[] {
    return this.#kept.map(entryOf)
  }

  /** @returns a function that removes the listener */
  listen(listener: (entry: LogEntry) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#stop()
  }
}

function entryOf({ n, level, message, timestamp, identity, details }: Kept): LogEntry {
  const { request_id, event_id } = details
  const entry: LogEntry = { n, level, message: cut(message), timestamp, identity, request_id, event_id }
  const fields = Object.entries(details.fields).slice(0, FIELDS_MAX)
  if (fields.length > 0) entry.fields = Object.fromEntries(fields.map(([name, value]) => [name, short(value)]))
  return entry
}

/** A value that is too long is sent as the beginning of its text. */
function short(value: unknown): unknown {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? null)
  if (text === null || text.length <= FIELD_MAX_CHARS) return value
  return `${text.slice(0, FIELD_MAX_CHARS)}…`
}
