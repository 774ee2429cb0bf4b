/** Levels, as records and streams carry them. */
export type LogLevel = 'DEBUG' | 'INFO' | 'WARNING' | 'ERROR'

/** What belongs to a log call besides its message. */
export interface LogDetails {
  /** The request that was being handled, or that has caused the event that was; null outside of both. */
  request_id: string | null
  /** The event that a subscriber was handling. */
  event_id: string | null
  /** As they were passed, an Error as `error` and `stack`. Not to be changed. */
  fields: Readonly<Record<string, unknown>>
}

/**
 * Receives each log call of the process.
 * @param timestamp ISO 8601 UTC with milliseconds
 * @param identity the plugin (`users.CreateUser`) or tool (`db`) that logged
 */
export type LogSink = (
  level: LogLevel,
  message: string,
  timestamp: string,
  identity: string,
  details: LogDetails,
) => void

/** Structured logging. The primary writes the records of all threads into one stream. */
export interface Logger {
  /** @param fields further JSON values for the log line, or an Error; they are not sent to `/system/logs/stream`, but shown on the dashboard */
  debug(message: string, fields?: Record<string, unknown> | Error): void
  info(message: string, fields?: Record<string, unknown> | Error): void
  warning(message: string, fields?: Record<string, unknown> | Error): void
  /** Alias of `warning`. */
  warn(message: string, fields?: Record<string, unknown> | Error): void
  error(message: string, fields?: Record<string, unknown> | Error): void
  /**
   * Receives every log record of the process: those of this thread at once, those of other threads within 100 ms.
   * @returns a function that removes the sink
   */
  addSink(sink: LogSink): () => void
}
