// The log of all threads of the process: JSON lines for programs, or text for people.
import type { LogLevel } from '../../contracts/logger.ts'
import { processNumber } from '../../core/config/checks.ts'
import type { Settings } from '../../core/config/schema.ts'
import { ThreadLog } from '../../runtime/log-records.ts'
import type { LogRecord } from '../../transport/messages.ts'
import { LogOutput, standardOutput, WHOLE_PIECE_BYTES } from './log-output.ts'
import type { RequestLine, RequestLog } from './request-log.ts'
import { type Colour, forPeople, type LogLine, printable, Terminal } from './terminal.ts'

/** The numbers by which lines name them. Source: Bunyan's levels, which most readers of such logs know. */
const LEVELS = { DEBUG: 20, INFO: 30, WARNING: 40, ERROR: 50 } as const
/** Columns of a request's method: the longest usual one is OPTIONS. */
const METHOD_WIDTH = 7

/** Opens the log on standard output. */
export function createLog(settings: Settings, terminal?: Terminal): ProcessLog<unknown> {
  const output = new LogOutput({
    maxBytes: settings.logBufferBytes,
    ...(processNumber(settings) === null ? {} : { pieceBytes: WHOLE_PIECE_BYTES }),
    write: standardOutput(),
  })
  // However the process ends, as far as its code still runs.
  process.on('exit', () => output.flush())
  const writeLine: WriteLine = (line, level) => output.write(line, level)
  const people = settings.logFormat === 'json' ? null : (terminal ?? new Terminal(writeLine))
  const write: WriteLine =
    people === null
      ? (line, level) => writeLine(printable(`${line}\n`), level)
      : linesForPeople(people, processNumber(settings))
  return new ProcessLog(settings, write, people, output)
}

export type Log = (level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>) => void

type WriteLine = (line: string, level: LogLevel) => void

/** What a line begins with, and its colour. */
const LABELS = {
  DEBUG: ['DEBUG', 'dim'],
  INFO: ['INFO', 'green'],
  WARNING: ['WARN', 'yellow'],
  ERROR: ['ERROR', 'red'],
} as const

/** @param number of this process, where several write to one terminal */
function linesForPeople(people: Terminal, number: number | null): WriteLine {
  const prefix = number === null ? '' : `${number}  `
  return (line, level) => {
    const record = JSON.parse(line) as LogLine & { time: number }
    const [label, colour] = LABELS[level]
    const text = people.paint('cyan', prefix + forPeople(record))
    people.write(`${timeOf(new Date(record.time))} ${people.paint(colour, label)}: ${text}\n`, level)
  }
}

/**
 * Takes the log records of all threads: writes them to standard output, as JSON lines or, on a terminal, as text for people, then gives them to the
 * sinks that plugins have added. What lanes are, it need not know.
 * @typeParam Origin what the records of a lane come from
 */
export class ProcessLog<Origin> {
  /** Logs for the primary and its plugins. */
  readonly log: Log
  /** Gives each record to the sinks. Set late, because the parts that hold the sinks write to the log themselves. */
  onRecord: (record: LogRecord, origin: Origin | null) => void = () => {}
  /** Null but in development. */
  requests: RequestLog | null = null
  readonly #replica: string
  readonly #least: number
  readonly #writeLine: WriteLine
  readonly #terminal: Terminal | null
  /** Where it goes: how much waits there, and what was dropped. */
  readonly output: LogOutput
  /** Faults of the lanes' boot with the current code, which each lane reports: shown once. */
  readonly #bootFaults = new Set<string>()

  /**
   * @param writeLine gets each record as JSON
   * @param terminal null when the output is for programs, not for people
   */
  constructor(settings: Settings, writeLine: WriteLine, terminal: Terminal | null, output: LogOutput) {
    this.#replica = settings.replicaId
    this.#least = LEVELS[settings.logLevel.toUpperCase() as LogLevel]
    this.#writeLine = writeLine
    this.#terminal = terminal
    this.output = output
    const own = new ThreadLog(settings, (record) => {
      this.record(record, null)
      return true
    })
    this.log = own.write
    output.onBack = ({ count, dropped, durationMs }) =>
      own.tell(
        'WARNING',
        `${count} log records were dropped: nobody read standard output for ${durationMs} ms, and LOG_BUFFER_BYTES was used up`,
        'log',
        { dropped, duration_ms: durationMs },
      )
  }

  /** @param origin the lane that wrote the record, within the limits; null for the primary */
  record(record: LogRecord, origin: Origin | null): void {
    const { fields } = record
    this.write(record)
    this.onRecord(record, origin)
    if (this.requests === null || typeof fields?.unawaited !== 'string' || fields.event_id !== null) return
    this.requests.unawaited(String(fields.request_id), fields.unawaited)
  }

  #isWritten(level: LogLevel): boolean {
    return LEVELS[level] >= this.#least
  }

  #line(level: LogLevel, fields: Record<string, unknown>, msg: string): void {
    if (!this.#isWritten(level)) return
    this.#writeLine(JSON.stringify({ level: LEVELS[level], replica: this.#replica, ...fields, msg }), level)
  }

  write({ level, message, timestampMs, identity, fields, requestId }: LogRecord): void {
    if (this.#terminal !== null && fields !== undefined) {
      if (fields.stage === 'boot' && this.#isRepeated(message)) return
      if (this.#terminal.canReplace && this.#isWritten('INFO') && isProgress(fields)) {
        return this.#progress(message, identity, fields)
      }
    }
    // People have the line of the request above or below.
    const cause = this.#terminal === null && requestId !== undefined ? { request_id: requestId } : undefined
    this.#line(level, { ...cause, ...fields, time: timestampMs, identity }, message)
  }

  /** The code has changed or is tried again: its faults are shown anew. */
  forgetFaults(): void {
    this.#bootFaults.clear()
  }

  #isRepeated(message: string): boolean {
    if (this.#bootFaults.has(message)) return true
    this.#bootFaults.add(message)
    return false
  }

  /** One line for all steps, which stays after the last one. */
  #progress(message: string, identity: string, fields: Progress): void {
    const took = fields.duration_ms === undefined ? '' : `  ${fields.duration_ms} ms`
    this.#terminal!.replace(`${identity}  ${fields.done} of ${fields.of}  ${message}${took}`)
    if (fields.done === fields.of) this.#terminal!.write('')
  }

  /** Logs a request that has ended. */
  request({ method, path, status, durationMs, plugin, requestId, page, unawaited, isLate }: RequestLine): void {
    const ms = durationMs < 10 ? Number(durationMs.toFixed(1)) : Math.round(durationMs)
    const terminal = this.#terminal
    const failed =
      unawaited === undefined ? '' : `${isLate ? 'later ' : ''}failed, not awaited: ${unawaited.join(', ')}`
    if (terminal === null) {
      const request = { method, path, status, duration_ms: ms, plugin, request_id: requestId }
      const fields = { ...request, unawaited, time: Date.now(), identity: 'http' }
      const text = `${method} ${path} ${status}`
      if (failed === '') this.#line('INFO', fields, text)
      else this.#line('WARNING', fields, `${text}  ${failed}`)
    } else if (this.#isWritten('INFO')) {
      const painted = terminal.paint(colourOf(status), status === 0 ? 'gone' : String(status))
      const shown = page === undefined ? painted : terminal.link(painted, page)
      const rest = terminal.paint('dim', `${ms} ms${plugin === '' ? '' : `  ${plugin}`}`)
      const fault = failed === '' ? '' : `  ${terminal.paint('red', failed)}`
      // Where to look why.
      const why = page === undefined || (status < 500 && failed === '') ? '' : `  ${terminal.paint('dim', page)}\n`
      terminal.write(
        `${terminal.paint('dim', timeOf(new Date()))} ${method.padEnd(METHOD_WIDTH)} ${path} ${shown} ${rest}${fault}\n${why}`,
      )
    }
  }

  /** Writes lines for people; nothing where the output is for programs. */
  writeForPeople(lines: readonly string[]): void {
    if (this.#terminal !== null) this.#terminal.write(lines.map((line) => `${line}\n`).join(''))
  }
}

/** By the class of the status. 0: the client did not wait for the answer. */
function colourOf(status: number): Colour {
  if (status >= 500) return 'red'
  if (status >= 400 || status === 0) return 'yellow'
  return status >= 300 ? 'cyan' : 'green'
}

/** `[13:37:00.042]` */
const timeOf = (date: Date): string =>
  `[${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, '0')}]`

interface Progress {
  done: number
  of: number
  duration_ms?: number
}

/** A record with `done` and `of` is a step of something that takes several. */
function isProgress(fields: Record<string, unknown>): fields is Record<string, unknown> & Progress {
  return typeof fields.done === 'number' && typeof fields.of === 'number'
}
