const { ServiceManager } = require('./service-manager.cjs')

/** What the guardian itself answers to the service manager, for all processes. */
const MANAGER_VARIABLES = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']

/** Several processes of the runtime on one port: the order in which they start and reload, and what is told when all have done so. */
class ProcessGroup {
  processes
  isStopping = false
  #manager = new ServiceManager()
  /** Numbers of the processes that have said that they are ready, until all have. */
  #unready
  #haveOthersStarted = false
  /** Those that are to reload after the one that does. */
  #waiting = []
  #isReloading = false

  /**
   * @param args of Node, for the runtime
   * @param create makes a process of the guardian with these options
   */
  constructor(args, count, create) {
    const numbers = Array.from({ length: count }, (_, number) => number)
    this.#unready = new Set(numbers)
    this.processes = numbers.map((number) => {
      const name = `process ${number}`
      return create({
        // There is one port for a debugger.
        args: number === 0 ? args : args.filter((arg) => !arg.startsWith('--inspect')),
        name,
        number,
        env: (hasEverServed) => environmentOf(number, count, number > 0 || hasEverServed),
        onServing: () => this.#startOthers(),
        onMessage: (message) => (message === 'ready' ? this.#onReady(number) : process.send?.(message)),
      })
    })
  }

  /**
   * The first alone migrates, and finds out whether the port is free and the settings are good: what is wrong is said once. The others follow
   * when it serves, all at once.
   */
  #startOthers() {
    if (this.#haveOthersStarted || this.isStopping) return
    this.#haveOthersStarted = true
    for (const each of this.processes.slice(1)) each.start()
  }

  /** Who has started the guardian is told once, when all are. */
  #onReady(number) {
    if (!this.#unready.delete(number) || this.#unready.size > 0) return
    process.send?.('ready')
    this.#manager.ready(`Serving with ${this.processes.length} processes`)
  }

  stopping() {
    if (this.isStopping) return
    this.isStopping = true
    this.#waiting = []
    this.#manager.stopping()
  }

  /** One after the other, so that a mistake in the new code stays in the first: it goes on with its old code, as the others do. */
  reload() {
    this.#waiting = [...this.processes]
    if (this.#isReloading || this.isStopping) return
    this.#isReloading = true
    this.#manager.reloading()
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
    if (!this.isStopping) this.#manager.ready('Reloaded')
  }
}

/**
 * The environment of a process. Its number is what pm2 gives to several processes of one service: part of REPLICA_ID, and by which jobs run in one.
 * Where pm2 runs several guardians, their processes are numbered through.
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

module.exports = { ProcessGroup }
