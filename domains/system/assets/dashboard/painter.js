/** Milliseconds of work in one animation frame. The remaining jobs wait for the next frame. */
const BUDGET_MS = 6

/**
 * Runs drawing jobs in animation frames. A job may be requested at any time and runs at most once per frame, and at most once per
 * interval of its own: a thousand changes a second are drawn ten times.
 */
export class Painter {
  #jobs = new Map()
  #due = new Set()
  #frame = 0
  #timer = 0

  /** @returns a function that requests a run of the job; with the argument `true` it runs in the next frame */
  job(run, everyMs = 100) {
    const job = { run, everyMs, lastMs: Number.NEGATIVE_INFINITY, isUrgent: false }
    this.#jobs.set(run, job)
    return (isUrgent = false) => {
      job.isUrgent ||= isUrgent
      this.#due.add(job)
      this.#schedule(isUrgent ? 0 : Math.max(0, job.lastMs + everyMs - performance.now()))
    }
  }

  #schedule(inMs) {
    if (this.#frame !== 0) return
    if (inMs > 20) {
      this.#timer ||= setTimeout(() => {
        this.#timer = 0
        this.#schedule(0)
      }, inMs)
      return
    }
    this.#frame = requestAnimationFrame(() => this.#paint())
  }

  #paint() {
    this.#frame = 0
    const begunMs = performance.now()
    let waitMs = Number.POSITIVE_INFINITY
    for (const job of this.#due) {
      const nowMs = performance.now()
      const leftMs = job.isUrgent ? 0 : job.lastMs + job.everyMs - nowMs
      if (leftMs > 0 || nowMs - begunMs > BUDGET_MS) {
        waitMs = Math.min(waitMs, Math.max(0, leftMs))
        continue
      }
      this.#due.delete(job)
      job.isUrgent = false
      job.lastMs = nowMs
      job.run()
    }
    if (this.#due.size > 0) this.#schedule(waitMs)
  }
}
