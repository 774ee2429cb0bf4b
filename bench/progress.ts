import { Terminal } from '../src/primary/logging/terminal.ts'

const TICK_MS = 1000

/** Shows the progress of a run: lines for finished figures and, on a terminal, one line below them that is overwritten. */
export class Progress {
  readonly #terminal: Terminal
  readonly #nowMs: () => number
  #case = ''
  #step = ''
  #startedMs = 0
  /** Share of the case that is done, from 0 to 1, and since when; null when the case does not report it. */
  #done: { share: number; atMs: number } | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(terminal = new Terminal((text) => void process.stdout.write(text)), nowMs = () => performance.now()) {
    this.#terminal = terminal
    this.#nowMs = nowMs
  }

  /** @param number of the case, from 1 */
  begin(name: string, number: number, of: number): void {
    this.end()
    this.#case = `${name} (${number} of ${of})`
    this.#step = 'starting'
    this.#done = null
    this.#startedMs = this.#nowMs()
    if (this.#terminal.canReplace) this.#timer = setInterval(() => this.#show(), TICK_MS).unref()
    this.#show()
  }

  /** @param share of the case that is done, from 0 to 1 */
  step(what: string, share?: number): void {
    this.#step = what
    this.#done = share === undefined ? null : { share, atMs: this.#nowMs() }
    this.#show()
  }

  say(text: string): void {
    this.#terminal.clear()
    this.#terminal.write(`  ${text}\n`)
    if (this.#timer !== undefined) this.#show()
  }

  end(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#terminal.clear()
  }

  #show(): void {
    this.#terminal.replace(`${this.#case}  ${this.#step}${this.#left()}`)
  }

  /** Time that the rest of the case will take at the present speed. */
  #left(): string {
    if (this.#done === null || this.#done.share === 0) return ''
    const { share, atMs } = this.#done
    const wholeMs = (atMs - this.#startedMs) / share
    const leftSec = Math.max(0, Math.round((this.#startedMs + wholeMs - this.#nowMs()) / 1000))
    return `  about ${Math.floor(leftSec / 60)}:${String(leftSec % 60).padStart(2, '0')} left`
  }
}
