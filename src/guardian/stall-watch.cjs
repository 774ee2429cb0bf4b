const { readFileSync } = require('node:fs')

/** How often the guardian looks whether the runtime has said that it lives. It does so once a second. */
const LOOK_MS = 500
/** One look adds at most this much: a pause of the guardian itself, or of the machine, says nothing about the runtime. */
const LOOK_MAX_MS = 2 * LOOK_MS
/** Until the runtime serves, the limit is at least this: loading code may keep its loop for long, on a machine that is busy. */
const BOOT_LIMIT_MS = 60_000

/** Counts how long the runtime has not said that it lives. */
class StallWatch {
  #stillMs = 0
  #isInspected = false
  #lookedMs = Date.now()
  #timer

  /**
   * @param pid of the runtime
   * @param limitMs `PRIMARY_STALL_MS`
   * @param onStall called once, with the time for which nothing was heard
   */
  constructor(pid, limitMs, onStall) {
    this.hasServed = false
    this.#timer = setInterval(() => {
      const nowMs = Date.now()
      const elapsedMs = Math.max(0, nowMs - this.#lookedMs)
      this.#lookedMs = nowMs
      if (this.#isInspected || isHalted(pid)) return
      this.#stillMs += Math.min(elapsedMs, LOOK_MAX_MS)
      if (this.#stillMs < (this.hasServed ? limitMs : Math.max(limitMs, BOOT_LIMIT_MS))) return
      this.stop()
      onStall(this.#stillMs)
    }, LOOK_MS)
  }

  /** @param isInspected a debugger may hold the runtime from now on: silence then says nothing */
  alive(isInspected = false) {
    this.#stillMs = 0
    this.#isInspected = isInspected
  }

  stop() {
    clearInterval(this.#timer)
  }
}

/** True for a process that somebody has stopped (Ctrl-Z, SIGSTOP) or looks at with a debugger. Source: proc(5), the field `state`. */
function isHalted(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return /^[Tt]/.test(stat.slice(stat.lastIndexOf(')') + 2))
  } catch {
    // Not Linux, or it has just ended.
    return false
  }
}

module.exports = { StallWatch }
