const { readFileSync } = require('node:fs')

/** How often the guardian looks whether the runtime has said that it lives. It does so once a second. */
const LOOK_MS = 500
/** One look adds at most this much: a pause of the guardian itself, or of the machine, says nothing about the runtime. */
const LOOK_MAX_MS = 2 * LOOK_MS
/** Until the runtime serves, the limit is at least this, where its thread has not been at work for all of it: loading code may keep its loop for long, on a machine that is busy. */
const BOOT_LIMIT_MS = 60_000
const MS_PER_TICK = 10

/** Counts how long the runtime has not said that it lives. */
class StallWatch {
  #stillMs = 0
  #pid
  #isInspected = false
  /** CPU time of its main thread when it said last that it lives. */
  #cpuMs
  #lookedMs = Date.now()
  #timer

  /**
   * @param pid of the runtime
   * @param limitMs `PRIMARY_STALL_MS`
   * @param onStall called once, with the time for which nothing was heard
   */
  constructor(pid, limitMs, onStall) {
    this.hasServed = false
    this.#pid = pid
    this.#cpuMs = cpuMsOf(pid)
    this.#timer = setInterval(() => {
      const nowMs = Date.now()
      const elapsedMs = Math.max(0, nowMs - this.#lookedMs)
      this.#lookedMs = nowMs
      if (this.#isInspected || isHalted(pid)) return
      this.#stillMs += Math.min(elapsedMs, LOOK_MAX_MS)
      const isAtWork = () => cpuMsOf(pid) - this.#cpuMs >= limitMs
      if (this.#stillMs < limitMs || !(this.hasServed || this.#stillMs >= BOOT_LIMIT_MS || isAtWork())) return
      this.stop()
      onStall(this.#stillMs)
    }, LOOK_MS)
  }

  /** @param isInspected a debugger may hold the runtime from now on: silence then says nothing */
  alive(isInspected = false) {
    this.#stillMs = 0
    this.#isInspected = isInspected
    if (!this.hasServed) this.#cpuMs = cpuMsOf(this.#pid)
  }

  stop() {
    clearInterval(this.#timer)
  }
}

/** True for a process that somebody has stopped (Ctrl-Z, SIGSTOP) or looks at with a debugger. */
const isHalted = (pid) => /^[Tt]$/.test(statOf(pid)[0])

/** What its main thread has used. */
const cpuMsOf = (pid) => (Number(statOf(pid)[11]) + Number(statOf(pid)[12])) * MS_PER_TICK

/** Of its main thread, from the field `state` on. Source: proc(5), /proc/pid/stat. Where it is not Linux, or when it has just ended: one that never works. */
function statOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return ['', ...Array(12).fill('0')]
  }
}

module.exports = { StallWatch }
