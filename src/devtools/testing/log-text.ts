import type { LogEntry } from './app.ts'

/** Most lines that are shown. */
const SHOWN_MAX = 60

/** The output of a runtime as text: the end of its log, and its other output. */
export function logText({ logs, otherOutput }: { logs: readonly LogEntry[]; otherOutput: readonly string[] }): string {
  const lines = logs.slice(-SHOWN_MAX).map(({ level, identity, message, fields }) => {
    const { stack, ...rest } = fields
    const shown = Object.keys(rest).length === 0 ? '' : `  ${JSON.stringify(rest)}`
    return `  ${level} ${identity}  ${message}${shown}${typeof stack === 'string' ? `\n${stack}` : ''}`
  })
  return ['The log of the runtime:', ...lines, ...otherOutput.map((text) => text.trimEnd())].join('\n')
}
