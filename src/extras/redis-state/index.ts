// The tool `state` on Redis, where the increments of a turn are one script.
import type { State } from '../../contracts/state.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import type { CallDetails } from '../../contracts/tracing.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { RedisClient, readScript } from '../../stores/redis/client.ts'
import { answerFault } from '../../stores/redis/fault.ts'
import { WriteProbe } from '../../stores/redis/write-probe.ts'
import { notANumber, outOfRange, stateOf } from '../../stores/state/state.ts'
import { COUNTER_BYTES, Counter } from '../../transport/memory/words.ts'

const PREFIX = 'heddle:state:'
const DEFAULT = `${PREFIX}default:`

/**
 * The prefix of every key of a namespace: `heddle:state:<namespace>:`. Colons and percent signs of the namespace become `%3A` and `%25`,
 * so that it ends at the first colon. The key itself follows unchanged.
 */
function prefixOf(namespace: string): string {
  if (namespace === 'default') return DEFAULT
  return `${PREFIX}${namespace.replace(/[%:]/g, (char) => (char === ':' ? '%3A' : '%25'))}:`
}

/** The glob pattern that matches exactly the keys that begin with a text. */
export function patternOf(prefix: string): string {
  return `${prefix.replace(/[\\*?[\]^-]/g, '\\$&')}*`
}

const COMPARE_AND_SET = readScript(new URL('./compare-and-set-1.lua', import.meta.url))
/** Longest value, because a longer one would delay everything else on the connection. */
const VALUE_MAX_CHARS = 64 * 1024 * 1024
/** Keys that the server visits in one step of SCAN. */
const SCAN_COUNT = 1000

/**
 * The tool `state` on a key-value store: one store for all threads of all replicas. Each thread has its own connection.
 * While the store cannot be reached, calls are rejected at once; nothing else happens.
 */
export default class RedisStateTool implements Tool {
  readonly name = 'state'
  readonly #runtime: ToolRuntime
  #client: RedisClient | null = null
  #increments!: Increments
  /** How often the store has refused a call of any thread. */
  readonly #refusals: Counter
  #probe: WriteProbe | null = null

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
    this.#refusals = new Counter(runtime.sharedMemory('refusals', COUNTER_BYTES))
  }

  /** In the primary it waits for the first attempt to connect. It does not fail, because the store may come later. */
  async boot(): Promise<void> {
    const client = this.#connected()
    const { thread, host } = this.#runtime
    if (thread.kind !== 'primary') return
    const { settings, log } = this.#runtime
    this.#probe = new WriteProbe({
      refusals: () => this.#refusals.value,
      write: () => client.command('set', [`heddle:probe:${settings.replicaId}`, '1', 'PX', 1000]),
      log,
    })
    this.#probe.start()
    await client.opened
    if (client.fault === null) return this.#warnOfEviction(client)
    this.#refused(client.fault)
    host.updateToolStatus(this.name, 'DEAD', client.fault.message)
    const stopWaiting = client.onUp(() => {
      stopWaiting()
      host.updateToolStatus(this.name, 'OK', 'Recovered from transient failure')
    })
  }

  /** Warns of a store that evicts keys when it is full: counters and locks would disappear without an error. */
  async #warnOfEviction(client: RedisClient): Promise<void> {
    // A user without the right to ask gets no warning.
    const info = await client.command<string>('info', ['memory']).catch(() => '')
    const policy = /^maxmemory_policy:(allkeys-\w+)/m.exec(info)?.[1]
    if (policy === undefined) return
    const message = `The key-value store drops keys when it is full (maxmemory-policy ${policy}): counters and locks may vanish. Set noeviction there.`
    this.#runtime.log('WARNING', message)
  }

  /** Source: OpenTelemetry semantic conventions for Redis. Keys are not shown, because they may contain data from a client. */
  describeCall(method: string): CallDetails {
    const { kvHost, kvPort, kvDb } = this.#runtime.settings
    const attributes = {
      'db.system.name': 'redis',
      'db.namespace': String(kvDb),
      'db.operation.name': method,
      'server.address': kvHost,
      'server.port': kvPort,
    }
    return { kind: 'client', attributes }
  }

  api(): State {
    const client = this.#connected()
    const increments = this.#increments
    /** Sends the increments that were called before, so that the next command follows them. */
    const send = <T>(call: string, key: string, command: string, args: (string | number)[]): Promise<T> => {
      increments.flush()
      return client.command<T>(command, args).catch((fault) => {
        throw asStateFault(this.#refused(fault), call, key)
      })
    }
    const scan = async (namespace: string, onKeys: (keys: string[]) => unknown): Promise<void> => {
      const pattern = patternOf(prefixOf(namespace))
      let cursor = '0'
      do {
        const args = [cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT]
        const [next, keys] = await send<[string, string[]]>('scan', pattern, 'scan', args)
        cursor = next
        if (keys.length > 0) await onKeys(keys)
      } while (cursor !== '0')
    }
    return stateOf({
      get: (namespace, key) => send('get', key, 'get', [nameOf(namespace, key)]),
      set: (namespace, key, text, ttlMs) => {
        requireShort(text)
        const args: (string | number)[] = [nameOf(namespace, key), text]
        if (ttlMs !== null) args.push('PX', ttlMs)
        return send('set', key, 'set', args)
      },
      delete: async (namespace, key) => (await send('delete', key, 'unlink', [nameOf(namespace, key)])) === 1,
      has: async (namespace, key) => (await send('has', key, 'exists', [nameOf(namespace, key)])) === 1,
      increment: (namespace, key, by, ttlMs) =>
        new Promise((resolve, reject) => {
          increments.add(nameOf(namespace, key), by, ttlMs ?? 0, {
            resolve,
            reject: (fault) => reject(asStateFault(this.#refused(fault), 'increment', key)),
            refuse: (text) => {
              if (text === 'not an integer') return notANumber(key)
              if (text === 'out of range') return outOfRange(key)
              return this.#refused(answerFault(text, 'INCRBY', this.#runtime.settings))
            },
          })
        }),
      compareAndSet: async (namespace, key, expected, next, ttlMs) => {
        const name = nameOf(namespace, key)
        requireShort(next)
        increments.flush()
        const held = await client
          .run<1 | string | null>(COMPARE_AND_SET, [name], [expected, next, ttlMs ?? ''])
          .catch((fault) => {
            throw asStateFault(this.#refused(fault), 'compareAndSet', key)
          })
        return held === 1 || held
      },
      keys: async (namespace) => {
        const prefixChars = prefixOf(namespace).length
        // A scan may return a key twice.
        const found = new Set<string>()
        await scan(namespace, (names) => {
          for (const name of names) found.add(name.slice(prefixChars))
        })
        return [...found]
      },
      clear: (namespace) => scan(namespace, (names) => send('clear', namespace, 'unlink', names)),
    })
  }

  /** @throws KV_UNAVAILABLE, KV_REFUSED with the reason */
  async healthCheck(): Promise<boolean> {
    await this.#connected().command('ping', [])
    return true
  }

  unreadyReason(): string | null {
    return this.#probe?.reason ?? null
  }

  /** What one call is refused for may hold for all. */
  #refused(fault: HeddleError): HeddleError {
    if (fault.status === 503) this.#refusals.add()
    return fault
  }

  async stop(): Promise<void> {
    this.#probe?.stop()
    this.#increments?.flush()
    await this.#client?.close()
  }

  #connected(): RedisClient {
    if (this.#client !== null) return this.#client
    const { thread, settings, log } = this.#runtime
    const role = thread.kind === 'primary' ? 'primary' : `lane-${thread.index}`
    this.#client = new RedisClient(settings, {
      name: `heddle:${settings.replicaId}:state:${role}`,
      log,
      scripts: [INCREMENT, COMPARE_AND_SET],
    })
    this.#increments = new Increments(this.#client)
    return this.#client
  }
}

const nameOf = (namespace: string, key: string): string => prefixOf(namespace) + key

/** @throws STATE_FULL */
function requireShort(text: string): void {
  if (text.length <= VALUE_MAX_CHARS) return
  throw new HeddleError(
    'STATE_FULL',
    `A value of state may have ${VALUE_MAX_CHARS} characters of JSON, got ${text.length}`,
  )
}

/** Every implementation uses the same code for a full store. For a key of the wrong type the message names the key. */
function asStateFault(fault: HeddleError, call: string, key: string): HeddleError {
  const { code, cause } = fault
  if (code === 'KV_FULL') {
    const message =
      'The key-value store behind state has reached its maxmemory: raise that, delete keys, or give them a ttlMs'
    return new HeddleError('STATE_FULL', message, { cause })
  }
  if (code !== 'KV_WRONG_TYPE') return fault
  const message = `state.${call}: the key ${JSON.stringify(key)} is not a value of state: another program writes to the same database; delete it there, or name another KV_DB`
  return new HeddleError('KV_WRONG_TYPE', message, { cause })
}

export const INCREMENT = readScript(new URL('./increment-n.lua', import.meta.url))

/** Most counters in one script. The server needs about 0.2 ms for them and does nothing else meanwhile. */
const BATCH_MAX = 256

interface Waiting {
  resolve(sum: number): void
  reject(fault: HeddleError): void
  /** @param text the text that the script returned, see increment-n.lua */
  refuse(text: string): HeddleError
}

interface Batch {
  step: number
  ttlMs: number
  keys: string[]
  waiting: Waiting[]
}

/**
 * Sends the increments of one turn of the event loop in one script. The step and the time to live are mostly the same, so each counter
 * costs only its key and a number. They keep the order of their calls; call `flush` before another command.
 */
export class Increments {
  readonly #client: RedisClient
  #batch: Batch | null = null

  constructor(client: RedisClient) {
    this.#client = client
  }

  /** @param ttlMs 0: none */
  add(key: string, step: number, ttlMs: number, waiting: Waiting): void {
    let batch = this.#batch
    if (batch === null || batch.step !== step || batch.ttlMs !== ttlMs) {
      if (batch === null) process.nextTick(this.flush)
      else this.#send(batch)
      batch = { step, ttlMs, keys: [], waiting: [] }
      this.#batch = batch
    }
    batch.keys.push(key)
    batch.waiting.push(waiting)
    if (batch.keys.length === BATCH_MAX) this.flush()
  }

  readonly flush = (): void => {
    const batch = this.#batch
    if (batch === null) return
    this.#batch = null
    this.#send(batch)
  }

  #send({ step, ttlMs, keys, waiting }: Batch): void {
    this.#client.run<(number | string)[]>(INCREMENT, keys, [step, ttlMs]).then(
      (results) => {
        for (let index = 0; index < waiting.length; index++) {
          const result = results[index]!
          if (typeof result === 'number') waiting[index]!.resolve(result)
          else if (/^-?\d+$/.test(result)) waiting[index]!.resolve(Number(result))
          else waiting[index]!.reject(waiting[index]!.refuse(result))
        }
      },
      (fault: HeddleError) => {
        // Each caller gets its own error, because some add to the error that they catch.
        const { code, message, cause, details } = fault
        for (const { reject } of waiting) reject(new HeddleError(code, message, { cause, details }))
      },
    )
  }
}
