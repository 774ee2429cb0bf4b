import type { LogEntry } from './app.ts'

/** Lines that are shown at most. */
const SHOWN_MAX = 60

/** What a runtime has said, for people: the end of its log, and what it wrote that is no log line. */
export function logText({ logs, noise }: { logs: readonly LogEntry[]; noise: readonly string[] }): string {
  const lines = logs.slice(-SHOWN_MAX).map(({ level, identity, message, fields }) => {
    const { stack, ...rest } = fields
    const shown = Object.keys(rest).length === 0 ? '' : `  ${JSON.stringify(rest)}`
    return `  ${level} ${identity}  ${message}${shown}${typeof stack === 'string' ? `\n${stack}` : ''}`
  })
  return ['The log of the runtime:', ...lines, ...noise.map((text) => text.trimEnd())].join('\n')
}
