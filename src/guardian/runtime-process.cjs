// One process of the runtime under the guardian: started, watched, stopped, and started again within bounds.
const { spawn } = require('node:child_process')
const { constants } = require('node:os')
const { ThreadClock, Watcher, tasksOf, timesOf } = require('../core/schedule/thread-clock.cjs')
const { FlightFolder, writeCrashReport } = require('./crash-report.cjs')

/** The environment is not valid (EX_CONFIG of sysexits.h): another start would say the same. */
const EXIT_CONFIG = 78
/** How long the runtime takes to end, until it says so itself. */
const STOP_DEFAULT_MS = 15_000
/** When a runtime is gone, what it wrote last is waited for this long. */
const LAST_WORDS_MS = 100
/**
 * With more deaths than this within the window the guardian gives up: what kills every start is not fixed by another. Source: Erlang/OTP's
 * supervisor, restart intensity.
 */
const RESTART_INTENSITY = 10
const RESTART_WINDOW_MS = 60_000
/** A start that dies before it serves is tried again after this long, and twice as long after each further one in a row, up to the longest. */
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000
/** How often the guardian looks whether the runtime has said that it lives. It does so once a second. */
const LOOK_MS = 500
/** One look adds at most this much: a pause of the guardian itself, or of the machine, says nothing about the runtime. */
const LOOK_MAX_MS = 2 * LOOK_MS
/** Until the runtime serves, a thread that blocks has at least this long: a start waits for locks and disks. */
const BOOT_LIMIT_MS = 60_000

/** Starts the runtime, ends it when it hangs, and starts it again when it dies. */
class RuntimeProcess {
  #options
  #bounds = new RestartBounds()
  #flight = new FlightFolder()
  #child = null
  #tail = () => ''
  #startedMs = 0
  #stallWatch = null
  #restartTimer = null
  #stopWatch = null
  /** The runtime has served once: its command and its settings are good. */
  #hasEverServed = false
  #hasServed = false
  /** A debugger is attached to the runtime: no time limit holds. */
  #isDebugged = false
  /** The guardian has told it to end. */
  #isStopped = false
  /** It has said that it ends to be started again. */
  #isAgain = false
  #stallMs = null
  #onReloaded = null
  /** What the runtime has said of itself: how long its end takes, and where crash reports go. */
  #told = { stopMs: STOP_DEFAULT_MS, crashReportsDir: null, crashReportsKept: 0 }

  /**
   * @param options `args`: of Node. `name`: how messages call it. `number`: among several; undefined when it is alone: then the guardian ends with it,
   * when it ends itself in order. `env`: gives its variables, told whether it has ever served. `stderr`. `onServing`. `onMessage`: of what is meant for
   * who has started the guardian. `onOver`: told the exit code when it is not started again
   */
  constructor(options) {
    this.#options = options
  }

  get isRunning() {
    return this.#child !== null || this.#restartTimer !== null
  }

  start() {
    const { args, env, stderr, onOver } = this.#options
    this.#restartTimer = null
    this.#hasServed = false
    this.#isDebugged = false
    this.#stallMs = null
    this.#startedMs = Date.now()
    this.#flight.clear()
    const variables = env(this.#hasEverServed)
    // Whoever has started this guardian from a lane knows all of it by the beginning.
    const run = `${variables.HEDDLE_RUN ?? ''}${this.#flight.path}-${this.#startedMs}`
    const child = spawn(process.execPath, args, {
      // Standard output is the runtime's own, so it costs nothing. In a session of its own it gets each signal once: from here.
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      detached: true,
      env: { ...variables, HEDDLE_FLIGHT_DIR: this.#flight.path, HEDDLE_RUN: run },
    })
    this.#child = child
    this.#tail = stderr.follow(child.stderr)
    child.on('message', (message) => this.#onMessage(message))
    child.once('error', (error) => {
      if (child.pid !== undefined) return
      stderr.say(`${this.#options.name} cannot be started: ${error.message}`)
      this.#child = null
      onOver(1)
    })
    child.once('exit', (code, signal) => {
      // Loaded when it is needed: the guardian is to stay small.
      require('./process-tree.cjs').endTree({ leaders: this.#flight.leaders(child.pid), mark: run })
      this.#stallWatch?.stop()
      this.#stallWatch = null
      this.#stopWatch?.stop()
      // A child of the runtime may hold the pipe, so its end is not waited for without a limit.
      const timer = setTimeout(over, LAST_WORDS_MS)
      child.stderr.once('end', over)
      const onExit = () => this.#onExit(code, signal)
      function over() {
        clearTimeout(timer)
        child.stderr.off('end', over)
        onExit()
      }
    })
  }

  /** Passes a signal on. */
  signal(signal) {
    this.#child?.kill(signal)
  }

  /** Passes a signal on by which the runtime ends. */
  stop(signal) {
    this.#isStopped = true
    if (this.#restartTimer !== null) {
      clearTimeout(this.#restartTimer)
      this.#restartTimer = null
      return this.#options.onOver(0)
    }
    this.#expectEnd()
    this.#child?.kill(signal)
  }

  /** Lets the runtime reload, as soon as it serves. @param done told whether the code that is now on disk runs there */
  reload(done) {
    this.#onReloaded = done
    if (this.#hasServed) this.#child?.kill('SIGHUP')
  }

  /** Removes its folder in memory. */
  remove() {
    this.#flight.remove()
  }

  #onMessage(message) {
    if (message?.type === 'alive') this.#isDebugged = message.isDebugged === true
    this.#stallWatch?.clock.reset()
    switch (message?.type) {
      case 'guarded': {
        const { stopMs, stallMs, crashReportsDir, crashReportsKept } = message
        this.#told = { stopMs, crashReportsDir, crashReportsKept }
        this.#stallWatch = new StallWatch(
          this.#child.pid,
          stallMs,
          () => this.#isDebugged,
          (stillMs) => this.#onStall(stillMs),
        )
        return
      }
      case 'serving':
        this.#hasServed = true
        this.#hasEverServed = true
        if (this.#stallWatch !== null) this.#stallWatch.hasServed = true
        if (this.#onReloaded !== null) this.#child.kill('SIGHUP')
        return this.#options.onServing()
      case 'reloaded':
        return this.#reloaded(message.ok)
      case 'stopping':
        this.#isAgain = message.again === true
        return this.#expectEnd()
      default:
        if (message?.type !== 'alive') this.#options.onMessage(message)
    }
  }

  #reloaded(ok) {
    const done = this.#onReloaded
    this.#onReloaded = null
    done?.(ok)
  }

  /** The runtime ends because it was told to: not later than it says itself. */
  #expectEnd() {
    if (this.#stopWatch !== null) return
    if (this.#child === null) return
    // Somebody may have stopped it: then it has no time of its own, and would stay.
    this.#child.kill('SIGCONT')
    const { stopMs } = this.#told
    this.#stopWatch = new ThreadWatch(this.#child.pid, (clock) => {
      if (this.#isDebugged) return clock.reset()
      if (clock.ms < stopMs) return
      this.#stopWatch.stop()
      const { name, stderr } = this.#options
      stderr.say(`${name} has not ended within ${stopMs} ms: SIGKILL ends it`)
      this.#child?.kill('SIGKILL')
    })
  }

  #onStall(stillMs) {
    this.#stallMs = stillMs
    const { name, stderr } = this.#options
    stderr.say(`the primary thread of ${name} has stood still for ${stillMs} ms: SIGKILL ends it`)
    this.#child?.kill('SIGKILL')
  }

  #onExit(code, signal) {
    const { name, number, stderr, onOver } = this.#options
    this.#child = null
    const exitCode = code ?? 128 + constants.signals[signal]
    // A start that fails says why, and the next would fail as well; an abort says nothing.
    const isFailedStart = !this.#hasEverServed && code !== null
    // It was told to by somebody else, or by itself.
    const isInOrder = code === 0 || this.#stopWatch !== null
    this.#stopWatch?.stop()
    this.#stopWatch = null
    // One of several is started again then: so each of them can be replaced while the others serve.
    const isOnlyOne = number === undefined && !this.#isAgain
    this.#isAgain = false
    const isLast = this.#isStopped || code === EXIT_CONFIG || isFailedStart || (isInOrder && isOnlyOne)
    if (isLast) return onOver(exitCode)
    if (!isInOrder) this.#report(code, signal)
    const how = isInOrder ? `has ended with ${signal ?? `code ${code}`}` : `died of ${signal ?? `code ${code}`}`
    const pauseMs = this.#bounds.died(Date.now(), this.#hasServed)
    if (pauseMs === null) {
      const { recent } = this.#bounds
      stderr.say(`${name} ${how}, ${recent} times within ${RESTART_WINDOW_MS / 1000} s: it is not started again`)
      return onOver(exitCode)
    }
    stderr.say(`${name} ${how}: it is started again${pauseMs > 0 ? ` in ${pauseMs} ms` : ''}`)
    if (pauseMs === 0) this.start()
    else this.#restartTimer = setTimeout(() => this.start(), pauseMs)
    // The next one has the code that is on disk.
    this.#reloaded(true)
  }

  /** Writes what is known of the death, for the next start and for people. */
  #report(code, signal) {
    const { crashReportsDir, crashReportsKept } = this.#told
    // It died before it could say where to.
    if (crashReportsDir === null) return
    try {
      writeCrashReport(crashReportsDir, crashReportsKept, {
        number: this.#options.number,
        signal,
        code,
        stallMs: this.#stallMs,
        startedMs: this.#startedMs,
        hadServed: this.#hasServed,
        stderr: this.#tail(),
        flight: this.#flight,
      })
    } catch (error) {
      this.#options.stderr.say(`no crash report could be written: ${error.message}`)
    }
  }
}

/** How often, and how soon, the runtime is started again. */
class RestartBounds {
  #deathsMs = []
  /** Starts in a row that never served. */
  #failedStarts = 0

  /** @returns how long the next start waits, milliseconds; null: there is none */
  died(nowMs, hasServed) {
    this.#deathsMs = [...this.#deathsMs.filter((atMs) => nowMs - atMs < RESTART_WINDOW_MS), nowMs]
    this.#failedStarts = hasServed ? 0 : this.#failedStarts + 1
    if (this.#deathsMs.length > RESTART_INTENSITY) return null
    if (hasServed) return 0
    return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.#failedStarts - 1))
  }

  get recent() {
    return this.#deathsMs.length
  }
}

/** Looks at the main thread of the runtime, by its own clock: what waits for a core is not late. */
class ThreadWatch {
  clock
  #timer

  /** @param onLook called every `LOOK_MS` */
  constructor(pid, onLook) {
    const tasks = tasksOf(pid)
    const times = () => (tasks === null ? null : timesOf(`${tasks}/${pid}`))
    this.clock = new ThreadClock(times)
    const watcher = new Watcher(LOOK_MAX_MS)
    this.#timer = setInterval(() => {
      watcher.tick()
      this.clock.pass(watcher.awakeMs)
      onLook(this.clock)
    }, LOOK_MS)
  }

  stop() {
    clearInterval(this.#timer)
  }
}

/** Counts how long the runtime has not said that it lives. */
class StallWatch extends ThreadWatch {
  hasServed = false

  /**
   * @param pid of the runtime
   * @param limitMs `PRIMARY_STALL_MS`
   * @param isDebugged whether a debugger may hold the runtime: silence then says nothing
   * @param onStall called once, with the own time in which nothing was heard
   */
  constructor(pid, limitMs, isDebugged, onStall) {
    super(pid, (clock) => {
      if (isDebugged()) return clock.reset()
      const isAtWork = (clock.cpuMs ?? 0) >= limitMs
      if (clock.ms < limitMs || !(this.hasServed || isAtWork || clock.ms >= BOOT_LIMIT_MS)) return
      this.stop()
      onStall(Math.round(clock.ms))
    })
  }
}

module.exports = { RuntimeProcess }
