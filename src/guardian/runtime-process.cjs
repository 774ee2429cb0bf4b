const { spawn } = require('node:child_process')
const { constants } = require('node:os')
const { FlightFolder } = require('./flight-folder.cjs')
const { writeCrashReport } = require('./crash-report.cjs')
const { RestartBounds, RESTART_WINDOW_MS } = require('./restart-bounds.cjs')
const { StallWatch } = require('./stall-watch.cjs')

/** The environment is not valid (EX_CONFIG of sysexits.h): another start would say the same. */
const EXIT_CONFIG = 78
/** How long the runtime takes to end, until it says so itself. */
const STOP_DEFAULT_MS = 15_000
/** When a runtime is gone, what it wrote last is waited for this long. */
const LAST_WORDS_MS = 100

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
  #stopTimer = null
  /** The runtime has served once: its command and its settings are good. */
  #hasEverServed = false
  #hasServed = false
  /** The guardian has told it to end. */
  #isStopped = false
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
    this.#stallMs = null
    this.#startedMs = Date.now()
    this.#flight.clear()
    const run = `${this.#flight.path}-${this.#startedMs}`
    const child = spawn(process.execPath, args, {
      // Standard output is the runtime's own, so it costs nothing. In a session of its own it gets each signal once: from here.
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      detached: true,
      env: { ...env(this.#hasEverServed), HEDDLE_FLIGHT_DIR: this.#flight.path, HEDDLE_RUN: run },
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
      require('./left-behind.cjs').endLeftBehind(child.pid, run)
      this.#stallWatch?.stop()
      this.#stallWatch = null
      clearTimeout(this.#stopTimer)
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
    this.#stallWatch?.alive(message?.isInspected === true)
    switch (message?.type) {
      case 'guarded': {
        const { stopMs, stallMs, crashReportsDir, crashReportsKept } = message
        this.#told = { stopMs, crashReportsDir, crashReportsKept }
        this.#stallWatch = new StallWatch(this.#child.pid, stallMs, (stillMs) => this.#onStall(stillMs))
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
    if (this.#stopTimer !== null) return
    this.#stopTimer = setTimeout(() => {
      const { name, stderr } = this.#options
      stderr.say(`${name} has not ended within ${this.#told.stopMs} ms: SIGKILL ends it`)
      this.#child?.kill('SIGKILL')
    }, this.#told.stopMs)
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
    const isInOrder = code === 0 || this.#stopTimer !== null
    clearTimeout(this.#stopTimer)
    this.#stopTimer = null
    // One of several is started again then: so each of them can be replaced while the others serve.
    const isLast = this.#isStopped || code === EXIT_CONFIG || isFailedStart || (isInOrder && number === undefined)
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

module.exports = { RuntimeProcess }
