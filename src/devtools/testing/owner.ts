// The test that something was started for, and the log that it gets to see.
/** A test of `node:test`, or any other object with `after`. */
export interface TestOwner {
  /** Registers a function that runs when the test is over. */
  after(end: () => Promise<void>): void
}

/** Ends what the test has started when the test is over, and shows the log when it has failed, as far as the runner says so. */
export function endWith(owner: TestOwner | undefined, stop: () => Promise<void>, log: () => string): void {
  owner?.after(async () => {
    await stop()
    if (((owner as { error?: unknown }).error ?? undefined) !== undefined) console.error(log())
  })
}

export function isOwner(value: unknown): value is TestOwner {
  return typeof value === 'object' && value !== null && typeof (value as TestOwner).after === 'function'
}

/** A log line of the runtime or of a plugin. */
export interface LogEntry {
  level: 'DEBUG' | 'INFO' | 'WARNING' | 'ERROR'
  message: string
  /** The plugin or tool that has logged it. */
  identity: string
  fields: Record<string, unknown>
}

/** Most lines that are shown. */
const SHOWN_MAX = 60

/** The output of a runtime as text: the end of its log, and its other output. */
export function logText({ logs, otherOutput = [] }: { logs: readonly LogEntry[]; otherOutput?: string[] }): string {
  const lines = logs.slice(-SHOWN_MAX).map(({ level, identity, message, fields }) => {
    const { stack, ...rest } = fields
    const shown = Object.keys(rest).length === 0 ? '' : `  ${JSON.stringify(rest)}`
    return `  ${level} ${identity}  ${message}${shown}${typeof stack === 'string' ? `\n${stack}` : ''}`
  })
  return ['The log of the runtime:', ...lines, ...otherOutput.map((text) => text.trimEnd())].join('\n')
}
