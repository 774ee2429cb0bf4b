// A thread's own clock: wall time minus the time for which it waited for a core.
const { closeSync, openSync, readSync, readdirSync, readlinkSync } = require('node:fs')

const MS_PER_TICK = 10
const NS_PER_MS = 1e6

/** Longer than any file that is read here. */
const buffer = Buffer.allocUnsafeSlow(4096)

/** Several times a second for hours: `readFileSync` takes 64 KiB for each file of `/proc`, and the guardian is to stay small. */
function read(file) {
  const descriptor = openSync(file)
  try {
    return buffer.latin1Slice(0, readSync(descriptor, buffer))
  } finally {
    closeSync(descriptor)
  }
}

/** The folder of a process's threads; null where `/proc` is missing or shows the numbers of another namespace. */
function tasksOf(pid) {
  try {
    return readlinkSync('/proc/self') === String(process.pid) ? `/proc/${pid}/task` : null
  } catch {
    return null
  }
}

/** What the system says of a thread; null when the thread has ended, and where the system does not say. */
function timesOf(folder) {
  try {
    // Source: Documentation/scheduler/sched-stats.rst. Both figures are nanoseconds; a wait is counted when it is over.
    const [used, waited] = read(`${folder}/schedstat`).split(' ')
    const stat = statOf(folder)
    // A kernel without CONFIG_SCHED_INFO writes zeros.
    return { ...stat, cpuMs: Number(used) / NS_PER_MS || stat.cpuMs, waitedMs: Number(waited) / NS_PER_MS }
  } catch {
    return timesWithoutSchedstat(folder)
  }
}

function timesWithoutSchedstat(folder) {
  try {
    return statOf(folder)
  } catch {
    return null
  }
}

/** Source: proc(5), /proc/pid/stat, fields state, majflt, utime and stime. The name in parentheses may hold blanks. */
function statOf(folder) {
  const stat = read(`${folder}/stat`)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const cpuMs = (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK
  return { state: fields[0], cpuMs, waitedMs: 0, pageReads: Number(fields[9]) }
}

/**
 * How much of the time between two readings was the thread's own: it computed, or blocked in a call.
 * @param passedMs for which whoever watches was itself awake
 */
function ownMs(before, now, passedMs) {
  const usedMs = Math.max(0, now.cpuMs - before.cpuMs)
  // R: it has a core or waits for one, and for how long is not known yet. T: somebody has stopped it. D and pages read: it waits for memory.
  if (/[RTt]/.test(now.state) || (now.state === 'D' && now.pageReads > before.pageReads)) return usedMs
  return Math.max(usedMs, passedMs - Math.max(0, now.waitedMs - before.waitedMs))
}

/** Counts one thread's own time. Where the system does not report on threads, all time counts for which the watcher was awake. */
class ThreadClock {
  /** Own time since the last `reset`. */
  ms = 0
  /** CPU time since then; null where the system does not say. */
  cpuMs = null
  #times
  #last = null

  /** @param times reads the thread, as `timesOf` does */
  constructor(times) {
    this.#times = times
  }

  /** @returns how much of the time was the thread's own */
  pass(passedMs) {
    const before = this.#last
    const now = this.#times()
    this.#last = now
    let own = passedMs
    if (now !== null) {
      own = before === null ? 0 : ownMs(before, now, passedMs)
      this.cpuMs = (this.cpuMs ?? 0) + (before === null ? 0 : Math.max(0, now.cpuMs - before.cpuMs))
    }
    this.ms += own
    return own
  }

  reset() {
    this.ms = 0
    this.cpuMs = null
    this.#last = null
  }
}

/** Tells a watcher for how long it was awake: time in which it waited for a core itself, or was stopped, says nothing about others. */
class Watcher {
  /** Since the tick before, however long ago that was. */
  elapsedMs = 0
  #maxMs
  #tickedMs = performance.now()
  #waitedMs = waitedHereMs()
  #awakeMs = 0

  /** @param maxMs one tick adds at most this much */
  constructor(maxMs) {
    this.#maxMs = maxMs
  }

  tick() {
    const nowMs = performance.now()
    this.elapsedMs = nowMs - this.#tickedMs
    this.#tickedMs = nowMs
    this.#awakeMs = null
  }

  /** How much of `elapsedMs` counts. Read on demand. */
  get awakeMs() {
    if (this.#awakeMs !== null) return this.#awakeMs
    const waitedMs = waitedHereMs()
    const awakeMs = this.elapsedMs - (waitedMs - this.#waitedMs)
    this.#waitedMs = waitedMs
    this.#awakeMs = Math.max(0, Math.min(awakeMs, this.#maxMs))
    return this.#awakeMs
  }
}

/** How long this thread has waited for a core since it began, milliseconds; 0 where the system does not say. */
function waitedHereMs() {
  try {
    return Number(read('/proc/thread-self/schedstat').split(' ')[1]) / NS_PER_MS
  } catch {
    return 0
  }
}

/** The system's number of this thread; 0 where it has none. */
function ownTask() {
  try {
    // Not the link: who may read that folder may read all variables of the process in it.
    return Number.parseInt(read('/proc/thread-self/stat'), 10)
  } catch {
    return 0
  }
}

/** Times of all threads of a process, by number. Empty where the system does not say. */
function timesOfThreads(pid = 'self') {
  const folder = tasksOf(pid)
  const times = new Map()
  if (folder === null) return times
  try {
    for (const task of readdirSync(folder)) {
      const read = timesOf(`${folder}/${task}`)
      if (read !== null) times.set(Number(task), read)
    }
  } catch {
    // No file descriptor is left to ask with.
  }
  return times
}

/** Several threads as one that runs while any of them does; null for none. */
function together(all) {
  const threads = [...all]
  if (threads.length === 0) return null
  const sumOf = (figure) => threads.reduce((sum, times) => sum + times[figure], 0)
  const state = ['R', 'D'].find((each) => threads.some((times) => times.state === each)) ?? 'S'
  return { state, cpuMs: sumOf('cpuMs'), waitedMs: sumOf('waitedMs'), pageReads: sumOf('pageReads') }
}

module.exports = { ThreadClock, Watcher, ownTask, tasksOf, timesOf, timesOfThreads, together, waitedHereMs }
