const { spawn } = require('node:child_process')
const { constants } = require('node:os')
const { FlightFolder } = require('./flight-folder.cjs')
const { writeCrashReport } = require('./crash-report.cjs')
const { RestartBounds, RESTART_WINDOW_MS } = require('./restart-bounds.cjs')
const { StallWatch } = require('./stall-watch.cjs')
const { StandardError } = require('./standard-error.cjs')

/** Passed on to the runtime. Node keeps SIGUSR1 for its debugger: the one that is meant is the runtime's. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGQUIT']
/** A terminal sends SIGINT to the whole group, and npm, which is in it, sends it once more: within this time it is one. */
const SAME_SIGNAL_MS = 300
/** The environment is not valid (EX_CONFIG of sysexits.h): another start would say the same. */
const EXIT_CONFIG = 78
/** How long the runtime takes to end, until it says so itself. */
const STOP_DEFAULT_MS = 15_000
/** When a runtime is gone, what it wrote last is waited for this long. */
const LAST_WORDS_MS = 100
/** At its own end the guardian waits this long for who reads the standard error. */
const FLUSH_MS = 500

/** Starts the runtime, passes signals on to it, ends it when it hangs, and starts it again when it dies. */
class Guardian {
  #arguments
  #stderr = new StandardError()
  #bounds = new RestartBounds()
  #flight = new FlightFolder()
  #child = null
  #startedMs = 0
  #stallWatch = null
  #restartTimer = null
  #stopTimer = null
  /** The runtime has served once: its command and its settings are good. */
  #hasEverServed = false
  #hasServed = false
  #isStopping = false
  #stallMs = null
  #lastSignalMs = new Map()
  /** What the runtime has said of itself: how long its end takes, and where crash reports go. */
  #told = { stopMs: STOP_DEFAULT_MS, crashReportsDir: null, crashReportsKept: 0 }

  /** @param args of Node, for the runtime */
  constructor(args) {
    this.#arguments = args
  }

  start() {
    for (const signal of SIGNALS) process.on(signal, () => this.#onSignal(signal))
    // Ctrl-Z: the runtime has a session of its own, which the terminal does not reach.
    process.on('SIGTSTP', () => {
      this.#child?.kill('SIGSTOP')
      process.kill(process.pid, 'SIGSTOP')
    })
    process.on('SIGCONT', () => this.#child?.kill('SIGCONT'))
    this.#startRuntime()
  }

  #startRuntime() {
    this.#restartTimer = null
    this.#hasServed = false
    this.#stallMs = null
    this.#startedMs = Date.now()
    this.#flight.clear()
    const child = spawn(process.execPath, this.#arguments, {
      // Standard output is the runtime's own, so it costs nothing. In a session of its own it gets each signal once: from here.
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      detached: true,
      env: { ...process.env, HEDDLE_FLIGHT_DIR: this.#flight.path },
    })
    this.#child = child
    this.#stderr.follow(child.stderr)
    child.on('message', (message) => this.#onMessage(message))
    child.once('error', (error) => {
      if (child.pid !== undefined) return
      this.#stderr.say(`the runtime cannot be started: ${error.message}`)
      this.#end(1)
    })
    child.once('exit', (code, signal) => {
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
        return
      case 'stopping':
        return this.#expectEnd()
      default:
        // Meant for who has started this process, as `ready` is for pm2.
        if (message?.type !== 'alive') process.send?.(message)
    }
  }

  #onSignal(signal) {
    const nowMs = Date.now()
    const isSame = STOP_SIGNALS.includes(signal) && nowMs - (this.#lastSignalMs.get(signal) ?? 0) < SAME_SIGNAL_MS
    if (isSame) return
    this.#lastSignalMs.set(signal, nowMs)
    if (STOP_SIGNALS.includes(signal)) {
      if (this.#restartTimer !== null) {
        clearTimeout(this.#restartTimer)
        return this.#end(0)
      }
      this.#expectEnd()
    }
    this.#child?.kill(signal)
  }

  /** The runtime ends because it was told to: not later than it says itself. */
  #expectEnd() {
    if (this.#isStopping) return
    this.#isStopping = true
    this.#stopTimer = setTimeout(() => {
      this.#stderr.say(`the runtime has not ended within ${this.#told.stopMs} ms: SIGKILL ends it`)
      this.#child?.kill('SIGKILL')
    }, this.#told.stopMs)
  }

  #onStall(stillMs) {
    this.#stallMs = stillMs
    this.#stderr.say(`the primary thread of the runtime has stood still for ${stillMs} ms: SIGKILL ends it`)
    this.#child?.kill('SIGKILL')
  }

  #onExit(code, signal) {
    this.#child = null
    const exitCode = code ?? 128 + constants.signals[signal]
    const isInOrder = code === 0 || code === EXIT_CONFIG
    // A start that fails says why, and the next would fail as well; an abort says nothing.
    const isFailedStart = !this.#hasEverServed && code !== null
    if (this.#isStopping || isInOrder || isFailedStart) return this.#end(exitCode)
    this.#report(code, signal)
    const how = signal ?? `code ${code}`
    const pauseMs = this.#bounds.died(Date.now(), this.#hasServed)
    if (pauseMs === null) {
      const { recent } = this.#bounds
      this.#stderr.say(
        `the runtime died of ${how}, ${recent} times within ${RESTART_WINDOW_MS / 1000} s: it is not started again`,
      )
      return this.#end(exitCode)
    }
    this.#stderr.say(`the runtime died of ${how}: it is started again${pauseMs > 0 ? ` in ${pauseMs} ms` : ''}`)
    if (pauseMs === 0) this.#startRuntime()
    else this.#restartTimer = setTimeout(() => this.#startRuntime(), pauseMs)
  }

  /** Writes what is known of the death, for the next start and for people. */
  #report(code, signal) {
    const { crashReportsDir, crashReportsKept } = this.#told
    // It died before it could say where to.
    if (crashReportsDir === null) return
    try {
      writeCrashReport(crashReportsDir, crashReportsKept, {
        signal,
        code,
        stallMs: this.#stallMs,
        startedMs: this.#startedMs,
        hadServed: this.#hasServed,
        stderr: this.#stderr.tail(),
        flight: this.#flight,
      })
    } catch (error) {
      this.#stderr.say(`no crash report could be written: ${error.message}`)
    }
  }

  #end(exitCode) {
    this.#flight.remove()
    this.#stderr.flush(FLUSH_MS, () => process.exit(exitCode))
  }
}

module.exports = { Guardian }
