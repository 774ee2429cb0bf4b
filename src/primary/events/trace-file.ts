import { appendFile, readFileSync, rename } from 'node:fs'
import { promisify } from 'node:util'
import { type Clock, nextTurn, pause } from '../../core/schedule/clock.ts'
import { TRACE_RECORDS, type Trace } from '../../runtime/events/trace-ring.ts'

const append = promisify(appendFile)
const renamed = promisify(rename)

/** A batch of so many traces is a busy process's. */
const BUSY_TRACES = 50
/** Time between two writes, milliseconds: short, so that a process that is killed has written what led to its end. */
const PAUSE_MS = 10
/** The same while the process is busy: 2,000 traces a second are written at most, the newest. */
const BUSY_PAUSE_MS = 250

/**
 * Keeps the last traces in a file: the next process shows under which events those stand that this one has left.
 * One line of JSON a trace, in two files that take turns: `path` and `path.old`. Only this user may read them. They are not synced: a power cut may take the last ones.
 * Writes never wait on the calling thread, and one is under way at a time.
 */
export class TraceFile {
  readonly #path: string
  readonly #onFault: (error: unknown) => void
  readonly #clock: Clock
  #lines = 0
  #waiting: Trace[] = []
  #writing: Promise<void> | null = null
  #isClosed = false

  /** @param onFault told once: nothing more is written then */
  constructor(path: string, clock: Clock, onFault: (error: unknown) => void) {
    this.#clock = clock
    this.#path = path
    this.#onFault = onFault
  }

  /** What the process before has left, oldest first, at most TRACE_RECORDS. Blocks: for the start. */
  read(): Trace[] {
    const traces = [...tracesIn(this.#oldPath), ...tracesIn(this.#path)]
    this.#lines = traces.length
    return traces.slice(-TRACE_RECORDS)
  }

  add(trace: Trace): void {
    if (this.#isClosed) return
    this.#waiting.push(trace)
    if (this.#waiting.length >= 2 * TRACE_RECORDS) this.#waiting = this.#waiting.slice(-TRACE_RECORDS)
    this.#writing ??= this.#write()
  }

  /** Resolves when all is written. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#writing
  }

  async #write(): Promise<void> {
    // What this turn of the loop still publishes is written with it.
    await nextTurn(this.#clock)
    try {
      while (this.#waiting.length > 0) {
        const traces = this.#waiting.slice(-TRACE_RECORDS)
        this.#waiting = []
        await this.#append(traces)
        if (!this.#isClosed) await pause(this.#clock, traces.length < BUSY_TRACES ? PAUSE_MS : BUSY_PAUSE_MS)
      }
    } catch (error) {
      this.#isClosed = true
      this.#waiting = []
      this.#onFault(error)
    } finally {
      this.#writing = null
    }
  }

  async #append(traces: readonly Trace[]): Promise<void> {
    if (this.#lines >= TRACE_RECORDS) {
      await renamed(this.#path, this.#oldPath).catch(ignoreMissing)
      this.#lines = 0
    }
    this.#lines += traces.length
    await append(this.#path, traces.map((trace) => `${JSON.stringify(trace)}\n`).join(''), { mode: 0o600 })
  }

  get #oldPath(): string {
    return `${this.#path}.old`
  }
}

/** A file that is missing has none. Skips a line that was cut off by the end of its process. */
function tracesIn(path: string): Trace[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return []
  }
  return text.split('\n').flatMap((line) => {
    try {
      const trace = JSON.parse(line) as Trace
      return isTrace(trace) ? [trace] : []
    } catch {
      return []
    }
  })
}

/** The file may be another version's, or anybody's. */
const isTrace = (value: Partial<Trace> | null): value is Trace =>
  typeof value?.id === 'string' &&
  typeof value.event === 'string' &&
  typeof value.emitter === 'string' &&
  Array.isArray(value.subscribers) &&
  typeof value.payloadKeys === 'string' &&
  typeof value.timestampMs === 'number' &&
  typeof value.trace === 'string'

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
