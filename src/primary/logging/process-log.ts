// The log of all threads of the process.
import type { LogLevel } from '../../contracts/logger.ts'
import type { Settings } from '../../core/config/schema.ts'
import { LogRate, limitRecord, newRecord } from '../../runtime/log-records.ts'
import type { LogRecord } from '../../transport/messages.ts'
import type { LogWriter } from './log-writer.ts'
import type { RequestLog } from './request-log.ts'

export type Log = (level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>) => void

/**
 * Takes the log records of all threads: writes them, then gives them to the sinks that plugins have added. What lanes are, it need not know.
 * @typeParam Origin what the records of a lane come from
 */
export class ProcessLog<Origin> {
  readonly #writer: LogWriter
  readonly #maxBytes: number
  readonly #rate: LogRate
  #onRecord: (record: LogRecord, origin: Origin | null) => void = () => {}
  /** Null but in development. */
  requests: RequestLog | null = null

  constructor(writer: LogWriter, settings: Pick<Settings, 'logRecordBytes' | 'logPluginRate'>) {
    this.#writer = writer
    this.#maxBytes = settings.logRecordBytes
    this.#rate = new LogRate(settings.logPluginRate, (identity, message, leftOut) =>
      this.#own('WARNING', message, identity, leftOut),
    )
    writer.onReaderBack = ({ count, dropped, durationMs }) =>
      this.#own(
        'WARNING',
        `${count} log records were dropped: nobody read standard output for ${durationMs} ms, and LOG_BUFFER_BYTES was used up`,
        'log',
        { dropped, duration_ms: durationMs },
      )
  }

  /** Connects the log to the sinks. Late, because the parts that hold the sinks write to the log themselves. */
  connect(onRecord: (record: LogRecord, origin: Origin | null) => void): void {
    this.#onRecord = onRecord
  }

  /** Logs for the primary and its plugins. */
  readonly log: Log = (level, message, identity, fields) => {
    if (this.#rate.admits(level, identity)) this.#own(level, message, identity, fields)
  }

  #own(level: LogLevel, message: string, identity: string, fields: Record<string, unknown> | undefined): void {
    this.record(limitRecord(newRecord(level, message, identity, fields), this.#maxBytes).record, null)
  }

  /** @param origin the lane that wrote the record, within the limits; null for the primary */
  record(record: LogRecord, origin: Origin | null): void {
    const { fields } = record
    this.#writer.write(record)
    this.#onRecord(record, origin)
    if (this.requests === null || typeof fields?.unawaited !== 'string' || fields.event_id !== null) return
    this.requests.unawaited(String(fields.request_id), fields.unawaited)
  }
}
