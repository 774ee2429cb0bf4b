import type { TransactionRun } from './transaction.ts'

/**
 * Tells runs that wait for nothing but their `tx` from others. Statements answer at once, so the former end while the thread works off
 * promises. The first tick after that finds the latter still running.
 */
export class Quiet {
  #isArmed = false
  #answer: (isPrompt: boolean) => void = () => {}

  /** True when the run, which has not ended, ends before the thread has no promise left to go on with. */
  outlasts(run: TransactionRun): Promise<boolean> {
    if (!this.#isArmed) {
      this.#isArmed = true
      // From within a promise: a tick that is asked for elsewhere may come before the promises.
      void Promise.resolve().then(() => process.nextTick(() => this.#tick()))
    }
    return new Promise((resolve) => {
      this.#answer = resolve
      run.onEnd = resolve
    })
  }

  #tick(): void {
    this.#isArmed = false
    this.#answer(false)
  }
}
