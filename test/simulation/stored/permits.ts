/** Judges from outside whether more handlers of a subscriber run at a time than its `concurrency: { max }` lets, over all processes. */
import { Finding } from '../oracle.ts'

export interface PermitPlan {
  readonly max: number
  /** So many of each share. */
  readonly isByShare: boolean
}

/** A handler that has begun. */
interface Running {
  /** It has ended, nobody waits for it any more, or its lane or process is gone. */
  isOver(): boolean
}

export class PermitJudge {
  readonly #running = new Map<string, Running[]>()

  /** @throws Finding if as many as may run do already */
  begins(name: string, { max }: PermitPlan, handler: Running): void {
    const running = (this.#running.get(name) ?? []).filter((each) => !each.isOver())
    running.push(handler)
    this.#running.set(name, running)
    if (running.length > max) throw new Finding(`${running.length} handlers of ${name} run at a time: ${max} may`)
  }
}
