// The tool `logger`.
import type { Owner } from '../../contracts/common.ts'
import type { Logger, LogLevel, LogSink } from '../../contracts/logger.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { isInstance, messageOf, stackOf, textOf } from '../../core/errors/description.ts'

type LogCall = Logger['info']

/** Characters of the JSON of an object that is logged as a message: as many bytes as the largest record may have. */
const OBJECT_MAX = 1_048_576

const LEVELS: readonly LogLevel[] = ['DEBUG', 'INFO', 'WARNING', 'ERROR']

// A call at a level that is not logged does nothing.
const silent: LogCall = () => {}

export default class LoggerTool implements Tool {
  readonly name = 'logger'
  #runtime: ToolRuntime

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
  }

  api(owner: Owner): Logger {
    const { host, settings } = this.#runtime
    // LOG_LEVEL applies to what is written. Sinks and `/system/logs/stream` get every call from INFO on, whatever it says.
    const lowest = Math.min(LEVELS.indexOf(settings.logLevel.toUpperCase() as LogLevel), LEVELS.indexOf('INFO'))
    const at = (level: LogLevel): LogCall => {
      if (LEVELS.indexOf(level) < lowest) return silent
      return (message, fields) => host.writeLog(level, logged(message), owner.name, asFields(fields))
    }
    const warning = at('WARNING')
    return {
      debug: at('DEBUG'),
      info: at('INFO'),
      warning,
      warn: warning,
      error: at('ERROR'),
      addSink: (sink: LogSink) => {
        if (typeof sink !== 'function') throw new TypeError('logger.addSink: the sink must be a function')
        return host.addLogSink(sink)
      },
    }
  }
}

/** A text is whole: LOG_RECORD_BYTES says how much of it is written. */
function logged(message: unknown): string {
  if (typeof message === 'string') return message
  return isInstance(message, Error) ? messageOf(message) : textOf(message, OBJECT_MAX)
}

/** Logging never breaks its caller, whatever it is given. */
function asFields(fields: unknown): Record<string, unknown> | undefined {
  if (isInstance(fields, Error)) return { error: messageOf(fields), stack: stackOf(fields) }
  return typeof fields === 'object' && fields !== null ? (fields as Record<string, unknown>) : undefined
}
