import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { forkModule, nextMessage } from '../child.ts'
import type { LoadPlan, LoadReply, LoadResult, RatePlan, RateResult } from './plan.ts'

/** The load generator's child process. It runs one plan at a time. */
export class LoadGenerator {
  readonly #child: ChildProcess = forkModule('load/child.ts')

  /** A closed loop. @throws when the generator's process has ended */
  async run(plan: LoadPlan): Promise<LoadResult> {
    return (await this.#ask(plan)) as LoadResult
  }

  /** An open loop: requests at a fixed rate. @throws when the generator's process has ended */
  async offer(plan: RatePlan): Promise<RateResult> {
    return (await this.#ask(plan)) as RateResult
  }

  async #ask(plan: LoadPlan | RatePlan): Promise<LoadResult | RateResult> {
    this.#child.send(plan)
    const reply = await nextMessage<LoadReply>(this.#child, 'the load generator')
    if ('error' in reply) throw new Error(reply.error)
    return reply
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    if (this.#child.connected) this.#child.disconnect()
    await exited
  }
}
