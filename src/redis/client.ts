import { Command, Redis } from 'ioredis'
import { HeddleError } from '../errors/catalogue.ts'
import { ConnectionLog, type WriteLog } from './connection-log.ts'
import { isAnswer, type KvSettings, type Outcome, placeOf, redisFault, unavailable } from './fault.ts'
import type { RedisScript } from './script.ts'
import { Watch } from './watch.ts'

const COMMAND_TIMEOUT_MS = 2000
const BACKOFF_MIN_MS = 50
const BACKOFF_MAX_MS = 2000
const KEEP_ALIVE_MS = 10_000
/** Between two questions whether a server has loaded its data. */
const LOADING_PAUSE_MS = 250
/** What `close` leaves to the commands that are under way. */
const CLOSE_WAIT_MS = 1000
/** Beyond these a command is refused: a server that is slower than its callers must not fill the memory of this process. */
const MAX_IN_FLIGHT = 65_536
const MAX_UNSENT_BYTES = 64 * 1024 * 1024

export type RedisArgument = string | number | Buffer

export interface RedisOptions {
  /** Shown by CLIENT LIST and in the log: `heddle:<replica>:<role>`. */
  name: string
  log: WriteLog
  /** The longest BLOCK of a read on this connection, which is then its alone; milliseconds. Left out: it never blocks. */
  blockingMs?: number
  /** Without an answer for so long the server counts as gone, and the connection is given up. Default 2000. */
  commandTimeoutMs?: number
  /** Loaded whenever the connection comes up. */
  scripts?: readonly RedisScript[]
}

type State = 'opening' | 'ready' | 'down' | 'closed'

/** Opens a connection of its own and keeps it open; the first commands may wait for it, KV_CONNECT_TIMEOUT at most. */
export function openRedis(kv: KvSettings, options: RedisOptions): RedisClient {
  return new RedisClient(kv, options)
}

/**
 * One connection to the key-value store, and the only user of ioredis.
 *
 * - Commands are sent in the order of their calls, those of one turn of the loop in one write.
 * - No command is ever sent twice and none waits for a connection that is down: it rejects at once. What was under way
 *   when a connection was lost rejects with `details.outcome` `unknown`, what was not sent with `not sent`.
 * - It connects again for ever, 2 s apart at most, whatever the reason of the loss.
 */
export class RedisClient {
  readonly #kv: KvSettings
  readonly #options: RedisOptions
  readonly #redis: Redis
  readonly #log: ConnectionLog
  readonly #watch: Watch
  readonly #upListeners = new Set<() => void>()
  readonly #channels = new Map<string, Set<(message: string) => void>>()
  #state: State = 'opening'
  #fault: HeddleError | null = null
  /** Why the present connection is being given up, told by the first who knows. */
  #loss: HeddleError | null = null
  #attempts = 0
  #isCorked = false
  #closing: Promise<void> | null = null
  readonly #opened: Promise<void>
  #openedNow!: () => void
  readonly #openTimer: NodeJS.Timeout
  #loadingTimer: NodeJS.Timeout | undefined
  #endTimer: NodeJS.Timeout | undefined

  constructor(kv: KvSettings, options: RedisOptions) {
    this.#kv = kv
    this.#options = options
    this.#log = new ConnectionLog(options.log, options.name)
    this.#opened = new Promise((resolve) => {
      this.#openedNow = resolve
    })
    const timeoutMs = (options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS) + (options.blockingMs ?? 0)
    const connectTimeoutMs = kv.kvConnectTimeout * 1000
    this.#watch = new Watch({
      timeoutMs,
      connectTimeoutMs,
      bytesRead: () => this.#redis.stream?.bytesRead ?? 0,
      onTimeout: () => this.#giveUp(unavailable(kv, `it has not answered for ${timeoutMs} ms`)),
      onSilence: () => this.#giveUp(unavailable(kv, 'it takes connections and does not answer; is it frozen?')),
    })
    this.#redis = new Redis({
      host: kv.kvHost,
      port: kv.kvPort,
      db: kv.kvDb,
      password: kv.kvPassword === '' ? undefined : kv.kvPassword,
      connectTimeout: connectTimeoutMs,
      connectionName: options.name.replace(/[^!-~]/g, '_'),
      keepAlive: KEEP_ALIVE_MS,
      disableClientInfo: true,
      lazyConnect: true,
      // A command must never be sent again or later: whoever called may have given up, and may have tried again.
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      // ioredis resubscribes without a look at the outcome, and its ready check writes to the console.
      autoResubscribe: false,
      enableReadyCheck: false,
      retryStrategy: () => this.#onClosed(),
    })
    this.#redis.on('error', (error: Error) => this.#giveUp(redisFault(error, '', kv)))
    this.#redis.on('connect', () => {
      this.#loss = null
      this.#watch.connected()
    })
    this.#redis.on('ready', () => void this.#greet())
    this.#redis.on('end', () => this.#onEnd())
    this.#redis.on('message', (channel: string, message: string) => {
      for (const listener of [...(this.#channels.get(channel) ?? [])]) listener(message)
    })
    this.#openTimer = setTimeout(() => {
      if (this.#state === 'opening') this.#goDown(this.#fault ?? this.#tooLate())
    }, connectTimeoutMs)
    this.#connect()
  }

  get isReady(): boolean {
    return this.#state === 'ready'
  }

  /** Why commands are refused at the moment; null when they are not, or nobody knows yet. */
  get fault(): HeddleError | null {
    return this.#state === 'ready' ? null : this.#fault
  }

  /** Resolves when the first attempt to connect has succeeded or failed; never rejects. */
  get opened(): Promise<void> {
    return this.#opened
  }

  /**
   * Sends one command and gives its reply: strings are UTF-8.
   * @throws KV_UNAVAILABLE, KV_REFUSED, KV_FULL, KV_READONLY, KV_WRONG_TYPE
   */
  command<T = unknown>(name: string, args: readonly RedisArgument[]): Promise<T> {
    return this.#call(name, args, 'utf8') as Promise<T>
  }

  /** As `command`, with Buffers in the place of strings. */
  commandBuffer<T = unknown>(name: string, args: readonly RedisArgument[]): Promise<T> {
    return this.#call(name, args, null) as Promise<T>
  }

  /** Runs a script by its hash, and once more by its text where the server does not know it: it has not run then. */
  run<T = unknown>(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<T> {
    return this.command<T>('evalsha', [script.sha, keys.length, ...keys, ...args]).catch((fault: HeddleError) => {
      if (!causeOf(fault).startsWith('NOSCRIPT')) throw fault
      return this.command<T>('eval', [script.lua, keys.length, ...keys, ...args])
    })
  }

  /**
   * Hears a channel from when it resolves, also after a loss of the connection (not what was published meanwhile).
   * For a connection of its own: an old server takes no other commands on it.
   * @returns how to end it
   */
  async subscribe(channel: string, listener: (message: string) => void): Promise<() => void> {
    const listeners = this.#channels.get(channel) ?? new Set()
    this.#channels.set(channel, listeners.add(listener))
    const leave = (): void => {
      listeners.delete(listener)
      if (listeners.size > 0 || this.#channels.get(channel) !== listeners) return
      this.#channels.delete(channel)
      // A connection that is lost at this moment is subscribed to nothing either.
      if (this.isReady) this.command('unsubscribe', [channel]).catch(() => {})
    }
    try {
      await this.command('subscribe', [channel])
    } catch (fault) {
      leave()
      throw fault
    }
    return leave
  }

  /** Calls back whenever the connection has come up, after the commands that have waited for it; soon, when it is up already. */
  onUp(listener: () => void): () => void {
    this.#upListeners.add(listener)
    if (this.isReady) queueMicrotask(listener)
    return () => void this.#upListeners.delete(listener)
  }

  /** Leaves commands that are under way a second, then ends the connection, whatever the server does. */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  // ── commands ──────────────────────────────────────────────────────────────

  #call(name: string, args: readonly RedisArgument[], encoding: 'utf8' | null): Promise<unknown> {
    if (this.#state === 'ready' && this.#closing === null) return this.#send(name, args, encoding)
    if (this.#state === 'opening') return this.#opened.then(() => this.#call(name, args, encoding))
    return Promise.reject(this.#refusal('not sent'))
  }

  #send(name: string, args: readonly RedisArgument[], encoding: 'utf8' | null): Promise<unknown> {
    const { stream } = this.#redis
    if (this.#watch.inFlight >= MAX_IN_FLIGHT || stream.writableLength > MAX_UNSENT_BYTES) {
      const sentence = `${this.#watch.inFlight} commands await its answer; it is slower than what this process asks`
      return Promise.reject(unavailable(this.#kv, sentence, 'not sent'))
    }
    if (!this.#isCorked) {
      this.#isCorked = true
      stream.cork()
      process.nextTick(() => {
        this.#isCorked = false
        stream.uncork()
      })
    }
    this.#watch.sent()
    const command = new Command(name, args as RedisArgument[], { replyEncoding: encoding })
    return (this.#redis.sendCommand(command) as Promise<unknown>).then(this.#onReply, this.#onFailure)
  }

  readonly #onReply = (reply: unknown): unknown => {
    this.#watch.answered()
    return reply
  }

  readonly #onFailure = (error: Error & { command?: { name: string } }): never => {
    this.#watch.answered()
    if (isAnswer(error)) throw redisFault(error, (error.command?.name ?? '').toUpperCase(), this.#kv)
    this.#fault ??= this.#loss ?? redisFault(error, '', this.#kv)
    throw this.#refusal(error.message.startsWith("Stream isn't writeable") ? 'not sent' : 'unknown')
  }

  /** A new error each time: its stack names the caller. */
  #refusal(outcome: Outcome): HeddleError {
    const fault = this.#loss ?? this.#fault
    if (fault === null || this.#state === 'closed') return unavailable(this.#kv, 'the connection is closed', outcome)
    return new HeddleError(fault.code, fault.message, { cause: fault.cause, details: { outcome } })
  }

  // ── the connection ────────────────────────────────────────────────────────

  #connect(): void {
    // Why it failed was told by the event `error`.
    this.#redis.connect().catch(() => {})
  }

  /** The connection is up and the password has been taken: asks whether the server is of use. */
  async #greet(): Promise<void> {
    const { stream } = this.#redis
    const isLost = (): boolean => stream !== this.#redis.stream || stream.destroyed || this.#state === 'closed'
    try {
      const info = await this.#send('info', ['persistence'], 'utf8')
      if (/^loading:1/m.test(String(info))) throw redisFault(new Error('LOADING'), '', this.#kv)
    } catch (thrown) {
      const fault = thrown as HeddleError
      if (isLost()) return
      // Whoever may not ask is taken at the server's word: it has let this connection in.
      if (!causeOf(fault).startsWith('NOPERM')) {
        if (!causeOf(fault).startsWith('LOADING')) return this.#giveUp(fault)
        if (this.#state === 'opening') this.#fault = fault
        else this.#goDown(fault)
        this.#loadingTimer = setTimeout(() => void this.#greet(), LOADING_PAUSE_MS)
        return
      }
    }
    if (isLost()) return
    // These go out before any command that relies on them, and what becomes of them shows there.
    for (const { lua } of this.#options.scripts ?? []) this.#send('script', ['LOAD', lua], 'utf8').catch(() => {})
    for (const channel of this.#channels.keys()) this.#send('subscribe', [channel], 'utf8').catch(() => {})
    this.#state = 'ready'
    this.#fault = null
    this.#attempts = 0
    this.#watch.ready()
    clearTimeout(this.#openTimer)
    this.#openedNow()
    this.#log.up(placeOf(this.#kv))
    for (const listener of this.#upListeners) queueMicrotask(listener)
  }

  /** Ends the present connection; `#onClosed` follows. */
  #giveUp(fault: HeddleError): void {
    if (this.#state === 'closed') return
    this.#loss ??= fault
    this.#goDown(this.#loss)
    this.#redis.stream?.destroy()
  }

  /** Called by ioredis before it rejects what was under way. @returns when to connect again, milliseconds */
  #onClosed(): number {
    clearTimeout(this.#loadingTimer)
    this.#watch.closed()
    this.#goDown(this.#loss ?? unavailable(this.#kv, 'it has closed the connection'))
    this.#loss = null
    const limitMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(this.#attempts++, 10))
    return limitMs * (0.5 + Math.random() / 2)
  }

  #goDown(fault: HeddleError): void {
    if (this.#state === 'closed') return
    this.#state = 'down'
    this.#fault = fault
    clearTimeout(this.#openTimer)
    this.#openedNow()
    if (this.#closing === null) this.#log.down(fault.message)
  }

  /** ioredis takes some faults of an attempt for final. */
  #onEnd(): void {
    if (this.#state !== 'closed') this.#endTimer = setTimeout(() => this.#connect(), BACKOFF_MAX_MS)
  }

  #tooLate(): HeddleError {
    return redisFault(Object.assign(new Error('too late'), { code: 'ETIMEDOUT' }), '', this.#kv)
  }

  async #end(): Promise<void> {
    if (this.isReady && this.#options.blockingMs === undefined) await this.#watch.idle(CLOSE_WAIT_MS)
    this.#state = 'closed'
    for (const timer of [this.#openTimer, this.#loadingTimer, this.#endTimer]) clearTimeout(timer)
    this.#watch.closed()
    this.#openedNow()
    this.#redis.disconnect()
    this.#redis.stream?.destroy()
  }
}

function causeOf({ cause }: HeddleError): string {
  return cause instanceof Error ? cause.message : ''
}
