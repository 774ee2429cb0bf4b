// The log's way out of the process, which never waits for its reader.
import { constants, fstatSync, openSync, statSync, writeSync } from 'node:fs'
import type { LogLevel } from '../../contracts/logger.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import { codeOf } from '../../core/errors/description.ts'
import { pauseThread } from '../../transport/memory/words.ts'

/** The least important first. */
const LEVELS: readonly LogLevel[] = ['DEBUG', 'INFO', 'WARNING', 'ERROR']
/** What waits is written in pieces of about this size, bytes. */
const PIECE_BYTES = 65_536
/** A pipe takes so much as a whole or not at all: lines of several processes are not mixed. Source: pipe(7), PIPE_BUF. */
export const WHOLE_PIECE_BYTES = 4096
/** While nothing can be written it is tried again after a time that doubles between these, milliseconds. */
const RETRY_MIN_MS = 1
const RETRY_MAX_MS = 64
/** At the end of the process the reader has this long to take what waits, milliseconds. */
export const LOG_FLUSH_MS = 1000

/** The reader of a pipe has ended, or the terminal is closed: neither comes back. */
const isGone = (error: unknown): boolean => ['EPIPE', 'EIO'].includes(codeOf(error) ?? '')

/** What happened while the reader did not read. */
interface Stall {
  /** Records per level that were dropped; levels without are missing. */
  dropped: Partial<Record<LogLevel, number>>
  count: number
  durationMs: number
}

interface LogOutputOptions {
  /** LOG_BUFFER_BYTES: what waits for the reader at most. */
  maxBytes: number
  /** Writes to where the log goes, and returns how many bytes were taken. @throws with `code` EAGAIN when there is no room now */
  write: (bytes: Buffer | string) => number
  /** Most bytes of a piece, unless one line has more. Default: about PIECE_BYTES. */
  pieceBytes?: number
}

interface Line {
  text: string
  bytes: number
  /** Its place among all lines. */
  number: number
}

/**
 * Where the log leaves the process. A line is written at once, and has been written when `write` returns. When the reader does not take it,
 * lines wait, in their order and up to a limit, while the thread goes on; beyond it the oldest of the least important are dropped.
 */
export class LogOutput {
  /** Told when a reader that had not read has read everything, and lines were dropped meanwhile. */
  onBack: (stall: Stall) => void = () => {}
  readonly #options: LogOutputOptions
  readonly #waiting: readonly Fifo<Line>[] = LEVELS.map(() => new Fifo<Line>())
  #waitingBytes = 0
  /** What has come since it was tried to write. */
  #untriedBytes = 0
  #nextNumber = 0
  /** Taken from the lines that wait, and begun. */
  #piece: Buffer | null = null
  #timer: NodeJS.Timeout | undefined
  #retryMs = RETRY_MIN_MS
  #stalledSinceMs = 0
  #dropped: Partial<Record<LogLevel, number>> = {}
  /** A flush has ended before everything was written: the next one does not wait again. */
  #hasGivenUp = false
  /** Since the start of the process. */
  readonly droppedTotal: Record<LogLevel, number> = { DEBUG: 0, INFO: 0, WARNING: 0, ERROR: 0 }

  constructor(options: LogOutputOptions) {
    this.#options = options
  }

  /** Bytes that wait for the reader. */
  get waitingBytes(): number {
    return this.#waitingBytes + (this.#piece?.length ?? 0)
  }

  /** @param text one or several whole lines */
  write(text: string, level: LogLevel): void {
    if (this.#timer !== undefined) return this.#wait(text, level)
    let written = 0
    try {
      written = this.#options.write(text)
    } catch (error) {
      if (isGone(error)) return this.#drop(level)
      this.#wait(text, level)
      return this.#stall()
    }
    if (written >= Buffer.byteLength(text)) return
    this.#piece = Buffer.from(text).subarray(written)
    this.#stall()
  }

  #stall(): void {
    this.#stalledSinceMs = performance.now()
    this.#retryLater(false)
  }

  #retryLater(hasProgressed: boolean): void {
    this.#retryMs = hasProgressed ? RETRY_MIN_MS : Math.min(this.#retryMs * 2, RETRY_MAX_MS)
    this.#timer = setTimeout(this.#retry, this.#retryMs).unref()
  }

  readonly #retry = (): void => {
    this.#untriedBytes = 0
    const before = this.waitingBytes
    const isEmpty = this.#writeWaiting()
    if (!isEmpty) return this.#retryLater(this.waitingBytes < before)
    this.#timer = undefined
    this.#retryMs = RETRY_MIN_MS
    this.#hasGivenUp = false
    const dropped = this.#dropped
    const count = Object.values(dropped).reduce((sum, lines) => sum + lines, 0)
    if (count === 0) return
    this.#dropped = {}
    this.onBack({ dropped, count, durationMs: Math.round(performance.now() - this.#stalledSinceMs) })
  }

  #wait(text: string, level: LogLevel): void {
    const bytes = Buffer.byteLength(text)
    const rank = LEVELS.indexOf(level)
    if (!this.#makeRoom(bytes, rank)) return this.#drop(level)
    this.#waiting[rank]!.push({ text, bytes, number: this.#nextNumber++ })
    this.#waitingBytes += bytes
    // In a long turn of the loop no timer looks whether the reader goes on.
    this.#untriedBytes += bytes
    if (this.#untriedBytes < PIECE_BYTES || this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#retry()
  }

  /** Drops the oldest of the least important lines. False when only more important ones are left. */
  #makeRoom(bytes: number, rank: number): boolean {
    const room = this.#options.maxBytes - bytes
    for (let lower = 0; lower <= rank; lower++) {
      const lines = this.#waiting[lower]!
      while (this.waitingBytes > room && lines.size > 0) {
        this.#waitingBytes -= lines.shift()!.bytes
        this.#drop(LEVELS[lower]!)
      }
    }
    return this.waitingBytes <= room
  }

  #drop(level: LogLevel): void {
    this.#dropped[level] = (this.#dropped[level] ?? 0) + 1
    this.droppedTotal[level]++
  }

  /** Writes what waits, as far as it is taken. @returns whether nothing waits any more */
  #writeWaiting(): boolean {
    for (;;) {
      this.#piece ??= this.#nextPiece()
      if (this.#piece === null) return true
      try {
        const written = this.#options.write(this.#piece)
        this.#piece = written < this.#piece.length ? this.#piece.subarray(written) : null
      } catch (error) {
        if (!isGone(error)) return false
        this.#piece = null
      }
    }
  }

  /** The first lines that wait, of all levels in their order. */
  #nextPiece(): Buffer | null {
    const { pieceBytes = Number.POSITIVE_INFINITY } = this.#options
    let text = ''
    let bytes = 0
    while (text.length < PIECE_BYTES) {
      let first: Fifo<Line> | null = null
      for (const lines of this.#waiting) {
        const line = lines.peek()
        if (line !== undefined && (first === null || line.number < first.peek()!.number)) first = lines
      }
      if (first === null || (text !== '' && bytes + first.peek()!.bytes > pieceBytes)) break
      const line = first.shift()!
      bytes += line.bytes
      this.#waitingBytes -= line.bytes
      text += line.text
    }
    return text === '' ? null : Buffer.from(text)
  }

  /** Writes what waits, for the process ends: for LOG_FLUSH_MS at most, while this thread stands still. */
  flush(): void {
    if (this.#timer === undefined) return
    const deadlineMs = performance.now() + (this.#hasGivenUp ? 0 : LOG_FLUSH_MS)
    while (!this.#writeWaiting()) {
      if (performance.now() >= deadlineMs) {
        this.#hasGivenUp = true
        return
      }
      pauseThread(RETRY_MIN_MS)
    }
  }
}

const STDOUT_FD = 1

/** Writes to standard output without waiting for who reads it. */
export function standardOutput(): (bytes: Buffer | string) => number {
  const fd = unblockedOutput()
  return (bytes) => (typeof bytes === 'string' ? writeSync(fd, bytes) : writeSync(fd, bytes))
}

/** Standard output as a descriptor that never makes a writer wait. A file has no reader, and is left as it is. */
function unblockedOutput(): number {
  const isFile = fstatSync(STDOUT_FD).isFile()
  // Node's `realpathSync` looks at what was asked last, whatever that was: after a pipe or a socket it takes the next path as it is, and a
  // module behind a link is loaded under the wrong name. So the last is a folder.
  statSync('.')
  if (isFile) return STDOUT_FD
  try {
    // The terminal's own description: another process that writes to it is not to be surprised.
    if (process.stdout.isTTY) {
      const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants
      return openSync('/proc/self/fd/1', O_WRONLY | O_NONBLOCK | O_NOCTTY)
    }
  } catch {
    // A system that has no such folder, or a terminal of another user: its writers wait.
  }
  // The stream of Node makes a pipe or a socket one that does not wait, as soon as it exists (`uv_pipe_open`), and undoes it at the end.
  void process.stdout.writable
  return STDOUT_FD
}
