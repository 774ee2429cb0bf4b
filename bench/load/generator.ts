import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { forkModule, nextMessage } from '../child.ts'
import type { LoadMessage, LoadPlan, LoadResult, RatePlan, RateResult } from './plan.ts'

/** The load generator's child process. It runs one plan at a time. */
export class LoadGenerator {
  readonly #child: ChildProcess = forkModule('load/child.ts')

  /** A closed loop. @throws when the generator's process has ended */
  async run(plan: LoadPlan): Promise<LoadResult> {
    return (await this.#ask({ kind: 'plan', plan })) as LoadResult
  }

  /** An open loop: requests at a fixed rate. @throws when the generator's process has ended */
  async offer(plan: RatePlan): Promise<RateResult> {
    return (await this.#ask({ kind: 'rate-plan', plan })) as RateResult
  }

  async #ask(order: LoadMessage): Promise<LoadResult | RateResult> {
    this.#child.send(order)
    const message = await nextMessage<LoadMessage>(this.#child, 'the load generator')
    if (message.kind === 'result') return message.result
    throw new Error(message.kind === 'failed' ? message.error : `unexpected ${message.kind}`)
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    if (this.#child.connected) this.#child.disconnect()
    await exited
  }
}
