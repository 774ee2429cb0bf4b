import type { LogLevel } from '../../contracts/logger.ts'
import type { ReloadInfo } from '../../contracts/registry.ts'
import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'

export interface ReloadsOptions {
  /** False while the process starts or stops. */
  isServing: () => boolean
  /** Replaces the lanes. @throws why the old ones go on */
  replace: () => Promise<void>
  /** All lanes have the new code. */
  onNewCode: () => void
  /** Told how each reload has ended. */
  onEnd: (info: ReloadInfo) => void
  log: (level: LogLevel, message: string) => void
}

/** Reloads the lanes with new code on demand, one reload after another. */
export class Reloads {
  readonly #options: ReloadsOptions
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: ReloadsOptions) {
    this.#options = options
  }

  /** @returns why the old code goes on, or null */
  next(): Promise<string | null> {
    const own = this.#last.then(() => this.#run())
    this.#last = own
    return own
  }

  async #run(): Promise<string | null> {
    const { isServing, replace, onNewCode, onEnd, log } = this.#options
    if (!isServing()) return 'the process is starting or stopping'
    const startedMs = steadyMs()
    let error: string | null = null
    try {
      await replace()
      onNewCode()
    } catch (thrown) {
      error = messageOf(thrown)
    }
    onEnd({ at: new Date().toISOString(), ok: error === null, error })
    if (error === null) log('INFO', `Reloaded in ${steadyMs() - startedMs} ms`)
    // The lanes have logged the rest of it.
    else log('ERROR', `Not reloaded, the old code goes on: ${withoutCode(error)}`)
    return error
  }
}

/** The mistake and its place, without the lines of code and the hint how to fix it. */
function withoutCode(error: string): string {
  const lines = error.split('\n').filter((line) => !/^ {2}(?: {2}|Fix: )/.test(line))
  return lines.map((line) => (line.startsWith('  ') ? `(${line.trim()})` : line)).join(' ')
}
