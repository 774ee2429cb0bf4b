import pino, { type Logger as Pino } from 'pino'
import type { Settings } from '../config/schema.ts'
import type { LogLevel } from '../contracts/logger.ts'

const PINO_LEVELS = { DEBUG: 'debug', INFO: 'info', WARNING: 'warn', ERROR: 'error' } as const

/** Where all log records of the process end: one stream on standard output, JSON lines or, on a terminal, for people. */
export async function createLog(settings: Settings): Promise<LogWriter> {
  const options: pino.LoggerOptions = { base: { replica: settings.replicaId }, level: 'debug', timestamp: false }
  if (settings.logFormat === 'pretty') {
    // Loaded only when somebody looks: it costs some megabytes.
    const { default: pretty } = await import('pino-pretty')
    return new LogWriter(
      pino(
        options,
        pretty({
          sync: true,
          ignore: 'replica,pid,hostname',
          messageFormat: '{identity}  {msg}',
          hideObject: false,
          customPrettifiers: {},
          singleLine: true,
          translateTime: 'HH:MM:ss.l',
          messageKey: 'msg',
        }),
      ),
    )
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
