// The guardian: keeps the processes of the runtime running, passes signals on to them, and says what all of them are.
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
/** What the guardian of several processes itself answers to the service manager, for all of them. */
const MANAGER_VARIABLES = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']
/** How often it reports within the time after which the manager takes it for hung. */
const REPORTS_PER_WATCHDOG = 3

/** Keeps the runtime running, in one process or in several on one port. */
class Guardian {
  #stderr = new StandardError()
  #processes
  /** Null for one process, which tells the service manager by itself. */
  #manager = null
  /** Numbers of the processes that have said that they are ready, until all have. */
  #unready
  #haveOthersStarted = false
  /** Those that are to reload after the one that does. */
  #waiting = []
  #isReloading = false
  #isStopping = false
  #lastSignalMs = new Map()
  #exitCode = 0

  /**
   * @param args of Node, for the runtime
   * @param count of processes
   */
  constructor(args, count = 1) {
    const numbers = Array.from({ length: count }, (_, number) => number)
    this.#unready = new Set(numbers)
    if (count > 1) this.#manager = createManager()
    this.#processes = numbers.map((number) => {
      const isAlone = count === 1
      const name = isAlone ? 'the runtime' : `process ${number}`
      return new RuntimeProcess({
        // There is one port for a debugger.
        args: number === 0 ? args : args.filter((arg) => !arg.startsWith('--inspect')),
        name,
        ...(isAlone ? {} : { number }),
        env: (hasEverServed) => (isAlone ? process.env : environmentOf(number, count, number > 0 || hasEverServed)),
        stderr: this.#stderr,
        onServing: () => this.#startOthers(),
        // Meant for who has started this process, as `ready` is for pm2.
        onMessage: (message) => (message === 'ready' ? this.#onReady(number) : process.send?.(message)),
        onOver: (exitCode) => this.#onOver(exitCode, name),
      })
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

  /**
   * The first alone migrates, and finds out whether the port is free and the settings are good: what is wrong is said once. The others follow
   * when it serves, all at once.
   */
  #startOthers() {
    if (this.#haveOthersStarted || this.#isStopping) return
    this.#haveOthersStarted = true
    for (const each of this.#processes.slice(1)) each.start()
  }

  /** Who has started the guardian is told once, when all are; of one process whenever it is. */
  #onReady(number) {
    if (this.#manager === null) return void process.send?.('ready')
    if (!this.#unready.delete(number) || this.#unready.size > 0) return
    process.send?.('ready')
    this.#manager.ready(`Serving with ${this.#processes.length} processes`)
  }

  #onSignal(signal) {
    const nowMs = Date.now()
    const isSame = STOP_SIGNALS.includes(signal) && nowMs - (this.#lastSignalMs.get(signal) ?? 0) < SAME_SIGNAL_MS
    if (isSame) return
    this.#lastSignalMs.set(signal, nowMs)
    // The runtime drains at SIGTERM and SIGINT alone.
    if (STOP_SIGNALS.includes(signal)) return this.#stop(signal === 'SIGQUIT' ? 'SIGTERM' : signal)
    if (signal === 'SIGHUP' && this.#manager !== null) return this.#reload()
    // One debugger is enough, and there is one port for it.
    if (signal === 'SIGUSR1') return this.#processes[0].signal(signal)
    this.#signal(signal)
  }

  #signal(signal) {
    for (const each of this.#processes) each.signal(signal)
  }

  /** One after the other, so that a mistake in the new code stays in the first: it goes on with its old code, as the others do. */
  #reload() {
    this.#waiting = [...this.#processes]
    if (this.#isReloading || this.#isStopping) return
    this.#isReloading = true
    this.#manager.reloading('Reloading')
    this.#reloadNext()
  }

  #reloadNext() {
    const next = this.#waiting.shift()
    if (next !== undefined) {
      return next.reload((ok) => {
        if (!ok) this.#waiting = []
        this.#reloadNext()
      })
    }
    this.#isReloading = false
    if (!this.#isStopping) this.#manager.ready('Reloaded')
  }

  #stop(signal) {
    if (!this.#isStopping) this.#manager?.stopping('Draining')
    this.#isStopping = true
    this.#waiting = []
    for (const each of this.#processes) if (each.isRunning) each.stop(signal)
  }

  /** One is not started again. Without it the service would be less than was asked for, and nobody would know: so all of it ends. */
  #onOver(exitCode, name) {
    this.#exitCode ||= exitCode
    const others = this.#processes.filter((each) => each.isRunning)
    if (others.length === 0) return this.#end()
    if (!this.#isStopping) {
      this.#stderr.say(`${name} is not started again: the others drain and end, too`)
      this.#stop('SIGTERM')
    }
  }

  #end() {
    for (const each of this.#processes) each.remove()
    this.#stderr.flush(FLUSH_MS, () => process.exit(this.#exitCode))
  }
}

/** Tells the service manager of several processes as of one. That each of them lives is the guardian's business: the manager is told that the guardian does. */
function createManager() {
  const { ServiceManager } = require('./service-manager.cjs')
  const { NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID = String(process.pid) } = process.env
  // Where the command fails, no message of a process would arrive, either.
  const manager = new ServiceManager(NOTIFY_SOCKET, () => {})
  const watchdogUsec = Number(WATCHDOG_USEC)
  if (watchdogUsec > 0 && WATCHDOG_PID === String(process.pid))
    setInterval(() => manager.alive(), watchdogUsec / 1000 / REPORTS_PER_WATCHDOG).unref()
  return manager
}

/**
 * The environment of one of several processes. Its number is what pm2 gives to several processes of one service: part of REPLICA_ID, and by which
 * jobs run in one. Where pm2 runs several guardians, their processes are numbered through.
 * @param joins others may listen on the port already: they are ours
 */
function environmentOf(number, count, joins) {
  const { NODE_APP_INSTANCE: outer = '0' } = process.env
  // `.env` may say another number by now, and would be read at each start.
  const env = { ...process.env, PROCESSES: String(count), HEDDLE_JOINS_PORT: String(joins) }
  for (const name of MANAGER_VARIABLES) delete env[name]
  // What is no number is a fault that the runtime reports.
  if (/^\d{0,4}$/.test(outer)) env.NODE_APP_INSTANCE = String(Number(outer) * count + number)
  return env
}

module.exports = { Guardian }
