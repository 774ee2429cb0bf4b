import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { LoadMessage, LoadPlan, LoadResult, RatePlan, RateResult } from './plan.ts'

/** The load generator's child process. It runs one plan at a time. */
export class LoadGenerator {
  readonly #child: ChildProcess

  constructor() {
    this.#child = fork(new URL('./child.ts', import.meta.url), {
      execArgv: ['--import', import.meta.resolve('tsx')],
      env: { ...process.env, NODE_ENV: 'production' },
    })
  }

  /** A closed loop. @throws when the generator's process has ended */
  async run(plan: LoadPlan): Promise<LoadResult> {
    return (await this.#ask({ kind: 'plan', plan })) as LoadResult
  }

  /** An open loop: requests at a fixed rate. @throws when the generator's process has ended */
  async offer(plan: RatePlan): Promise<RateResult> {
    return (await this.#ask({ kind: 'rate-plan', plan })) as RateResult
  }

  async #ask(order: LoadMessage): Promise<LoadResult | RateResult> {
    const settled = new AbortController()
    const { signal } = settled
    this.#child.send(order)
    try {
      const [message] = (await Promise.race([
        once(this.#child, 'message', { signal }),
        once(this.#child, 'exit', { signal }).then(([code]) => {
          throw new Error(`the load generator ended with code ${code}`)
        }),
      ])) as [LoadMessage]
      if (message.kind !== 'result')
        throw new Error(message.kind === 'failed' ? message.error : `unexpected ${message.kind}`)
      return message.result
    } finally {
      settled.abort()
    }
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    if (this.#child.connected) this.#child.disconnect()
    await exited
  }
}
