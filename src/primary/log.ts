import pino, { type Logger as Pino } from 'pino'
import type { Settings } from '../config/schema.ts'
import type { LogLevel } from '../contracts/logger.ts'

const PINO_LEVELS = { DEBUG: 'debug', INFO: 'info', WARNING: 'warn', ERROR: 'error' } as const

/** Where all log records of the process end: one stream on standard output, JSON lines or, on a terminal, for people. */
export async function createLog(settings: Settings): Promise<LogWriter> {
  const options: pino.LoggerOptions = {
    base: { replica: settings.replicaId },
    level: PINO_LEVELS[settings.logLevel.toUpperCase() as LogLevel],
    timestamp: false,
  }
  if (settings.logFormat === 'pretty') {
    // Loaded only when somebody looks: it costs some megabytes.
    const { default: pretty } = await import('pino-pretty')
    const stream = pretty({
      sync: true,
      translateTime: 'SYS:HH:MM:ss.l',
      hideObject: true,
      messageFormat: (line) => forPeople(line as unknown as LogLine),
    })
    return new LogWriter(pino(options, stream))
  }
  return new LogWriter(pino(options, pino.destination({ sync: true })))
}

export class LogWriter {
  readonly #pino: Pino

  constructor(logger: Pino) {
    this.#pino = logger
  }

  write(
    level: LogLevel,
    message: string,
    timestampMs: number,
    identity: string,
    fields?: Record<string, unknown>,
  ): void {
    this.#pino[PINO_LEVELS[level]]({ ...fields, time: timestampMs, identity }, message)
  }

  flush(): void {
    this.#pino.flush()
  }
}

interface LogLine {
  identity: string
  msg: string
  stack?: unknown
  [field: string]: unknown
}

const NOT_SHOWN = new Set(['level', 'time', 'replica', 'identity', 'msg', 'stack'])

/** `users.CreateUser  Something happened  user_id=7`, and a stack on lines of its own. */
function forPeople(line: LogLine): string {
  const fields = Object.entries(line)
    .filter(([name]) => !NOT_SHOWN.has(name))
    .map(([name, value]) => `  ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const stack = typeof line.stack === 'string' ? `\n${line.stack}` : ''
  return `${line.identity}  ${line.msg}${fields.join('')}${stack}`
}
