// Work that is done again and again, and trouble that is said rarely.
import { TIMER_MAX_MS } from './clock.ts'

/** Says when it is time to log the same trouble once more. */
export class Reminder {
  readonly #everyMs: number
  readonly #lastMs = new Map<string, number>()

  /** @param everyMs one trouble is logged at most once in this time */
  constructor(everyMs: number) {
    this.#everyMs = everyMs
  }

  /** True when this trouble was not logged in that time; whoever asks logs it now. */
  isDue(trouble = ''): boolean {
    const nowMs = performance.now()
    const lastMs = this.#lastMs.get(trouble)
    if (lastMs !== undefined && nowMs - lastMs < this.#everyMs) return false
    this.#lastMs.set(trouble, nowMs)
    return true
  }
}

/** Some work that is done again and again, never twice at a time: each run says how long to wait for the next one. */
export class RepeatingTask {
  readonly #work: () => Promise<number>
  #status: 'idle' | 'started' | 'stopped' = 'idle'
  #timer: NodeJS.Timeout | undefined
  /** When the next run is due, by `performance.now()`. */
  #dueMs = Number.POSITIVE_INFINITY
  #running: Promise<void> | null = null

  /** @param work resolves with the milliseconds until its next run; it must not reject */
  constructor(work: () => Promise<number>) {
    this.#work = work
  }

  get isStopped(): boolean {
    return this.#status === 'stopped'
  }

  /** Can be called once; a task that was stopped does not start again. */
  start(delayMs: number): void {
    if (this.#status !== 'idle') return
    this.#status = 'started'
    this.#runIn(delayMs)
  }

  /** The next run begins within this time, even if it is due later. A run that is under way ends before it. */
  runWithin(delayMs: number): void {
    if (this.#status === 'started' && performance.now() + delayMs < this.#dueMs) this.#runIn(delayMs)
  }

  /** Resolves when a run that is under way has ended. */
  async stop(): Promise<void> {
    this.#status = 'stopped'
    clearTimeout(this.#timer)
    await this.#running
  }

  #runIn(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#dueMs = performance.now() + delayMs
    // A run that is under way sets the timer when it ends.
    if (this.#running !== null) return
    this.#timer = setTimeout(
      () => {
        this.#running = this.#run()
      },
      Math.min(delayMs, TIMER_MAX_MS),
    )
  }

  async #run(): Promise<void> {
    this.#dueMs = Number.POSITIVE_INFINITY
    const waitMs = await this.#work()
    this.#dueMs = Math.min(this.#dueMs, performance.now() + waitMs)
    this.#running = null
    if (this.#status === 'started') this.#runIn(Math.max(0, this.#dueMs - performance.now()))
  }
}
