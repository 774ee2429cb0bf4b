// The log of all threads of the process.
import type { LogLevel } from '../../contracts/logger.ts'
import type { Settings } from '../../core/config/schema.ts'
import { ThreadLog } from '../../runtime/log-records.ts'
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
  #onRecord: (record: LogRecord, origin: Origin | null) => void = () => {}
  /** Null but in development. */
  requests: RequestLog | null = null
  /** Logs for the primary and its plugins. */
  readonly log: Log

  constructor(writer: LogWriter, settings: Pick<Settings, 'logRecordBytes' | 'logPluginRate'>) {
    this.#writer = writer
    const own = new ThreadLog(settings, (record) => {
      this.record(record, null)
      return true
    })
    this.log = own.write
    writer.output.onBack = ({ count, dropped, durationMs }) =>
      own.tell(
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

  /** @param origin the lane that wrote the record, within the limits; null for the primary */
  record(record: LogRecord, origin: Origin | null): void {
    const { fields } = record
    this.#writer.write(record)
    this.#onRecord(record, origin)
    if (this.requests === null || typeof fields?.unawaited !== 'string' || fields.event_id !== null) return
    this.requests.unawaited(String(fields.request_id), fields.unawaited)
  }
}
