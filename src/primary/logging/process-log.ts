import type { LogLevel } from '../../contracts/logger.ts'
import { namesIn } from '../../core/errors/description.ts'
import type { LogRecord } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { LogWriter } from './log-writer.ts'

export type Log = (level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>) => void

/** Takes the log records of all threads: writes them, then gives them to the sinks that plugins have added. */
export class ProcessLog {
  readonly #writer: LogWriter
  #onRecord: (record: LogRecord, origin: Lane | null) => void = () => {}

  constructor(writer: LogWriter) {
    this.#writer = writer
  }

  /** Connects the log to the sinks. Late, because the parts that hold the sinks write to the log themselves. */
  connect(onRecord: (record: LogRecord, origin: Lane | null) => void): void {
    this.#onRecord = onRecord
  }

  readonly log: Log = (level, message, identity, fields) => {
    const record: LogRecord = { level, message, timestampMs: Date.now(), identity }
    if (fields !== undefined) record.fields = fields
    this.record(record, null)
  }

  /** @param origin the lane that wrote the record; null for the primary */
  record(record: LogRecord, origin: Lane | null): void {
    const { level, message, timestampMs, identity, fields } = record
    try {
      this.#writer.write(level, message, timestampMs, identity, fields)
    } catch {
      // A plugin of the primary has logged fields that cannot be read.
      this.#writer.write(level, message, timestampMs, identity, { unserialisable: namesIn(fields ?? {}) })
    }
    this.#onRecord(record, origin)
  }
}
