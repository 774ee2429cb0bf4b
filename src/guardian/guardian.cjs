const { RuntimeProcess } = require('./runtime-process.cjs')
const { StandardError } = require('./standard-error.cjs')
const { isStartedByNpm } = require('./switch.cjs')

/** Passed on to the runtime. Node keeps SIGUSR1 for its debugger: the one that is meant is the runtime's. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGQUIT']
/** A terminal sends SIGINT to the whole group, and npm, which is in it, sends it once more: within this time it is one. Without npm each is one of its own. */
const SAME_SIGNAL_MS = isStartedByNpm() ? 300 : 0
/** At its own end the guardian waits this long for who reads the standard error. */
const FLUSH_MS = 500

/** Keeps the runtime running, in one process or in several on one port, and passes signals on to it. */
class Guardian {
  #stderr = new StandardError()
  #processes
  /** Null for one process, which does by itself what has to be agreed on among several. */
  #group = null
  #lastSignalMs = new Map()
  #exitCode = 0

  /**
   * @param args of Node, for the runtime
   * @param count of processes
   */
  constructor(args, count = 1) {
    if (count === 1) {
      this.#processes = [this.#process({ args, name: 'the runtime', env: () => process.env, onServing: () => {} })]
      return
    }
    const { ProcessGroup } = require('./process-group.cjs')
    const group = new ProcessGroup(args, count, (options) => this.#process(options))
    this.#group = group
    this.#processes = group.processes
  }

  #process(options) {
    return new RuntimeProcess({
      // Meant for who has started this process, as `ready` is for pm2.
      onMessage: (message) => process.send?.(message),
      onOver: (exitCode) => this.#onOver(exitCode, options.name),
      ...options,
      stderr: this.#stderr,
    })
  }

  start() {
    for (const signal of SIGNALS) process.on(signal, () => this.#onSignal(signal))
    // Ctrl-Z: the runtime has a session of its own, which the terminal does not reach.
    process.on('SIGTSTP', () => {
      this.#signal('SIGSTOP')
      process.kill(process.pid, 'SIGSTOP')
    })
    process.on('SIGCONT', () => this.#signal('SIGCONT'))
    this.#processes[0].start()
  }

  #onSignal(signal) {
    const nowMs = Date.now()
    const isSame = STOP_SIGNALS.includes(signal) && nowMs - (this.#lastSignalMs.get(signal) ?? 0) < SAME_SIGNAL_MS
    if (isSame) return
    this.#lastSignalMs.set(signal, nowMs)
    if (STOP_SIGNALS.includes(signal)) return this.#stop(signal)
    if (signal === 'SIGHUP' && this.#group !== null) return this.#group.reload()
    // One debugger is enough, and there is one port for it.
    if (signal === 'SIGUSR1') return this.#processes[0].signal(signal)
    this.#signal(signal)
  }

  #signal(signal) {
    for (const each of this.#processes) each.signal(signal)
  }

  #stop(signal) {
    this.#group?.stopping()
    for (const each of this.#processes) if (each.isRunning) each.stop(signal)
  }

  /** One is not started again. Without it the service would be less than was asked for, and nobody would know: so all of it ends. */
  #onOver(exitCode, name) {
    this.#exitCode ||= exitCode
    const others = this.#processes.filter((each) => each.isRunning)
    if (others.length === 0) return this.#end()
    if (!this.#group.isStopping) {
      this.#stderr.say(`${name} is not started again: the others drain and end, too`)
      this.#stop('SIGTERM')
    }
  }

  #end() {
    for (const each of this.#processes) each.remove()
    this.#stderr.flush(FLUSH_MS, () => process.exit(this.#exitCode))
  }
}

module.exports = { Guardian }
