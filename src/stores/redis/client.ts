// A client of Redis: one connection, for ever, and its scripts.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Command, Redis } from 'ioredis'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { ownLimit } from '../../core/schedule/waiting.ts'
import { clientTls } from '../tls/client-tls.ts'
import {
  endConnectionsOnBadReplies,
  isAnswer,
  type KvSettings,
  type Outcome,
  placeOf,
  redisFault,
  unavailable,
} from './fault.ts'
import { ConnectionLog, Watch, type WriteLog } from './watch.ts'

/** A Lua script from its own file. The number in the file's name says how many KEYS it takes; `n` means any number. */
export interface RedisScript {
  readonly lua: string
  /** The hash that EVALSHA takes. */
  readonly sha: string
}

/** Reads a script once, while the module that uses it loads: `readScript(new URL('./increment-n.lua', import.meta.url))`. */
export function readScript(file: URL): RedisScript {
  const lua = readFileSync(file, 'utf8')
  return { lua, sha: createHash('sha1').update(lua).digest('hex') }
}

const COMMAND_TIMEOUT_MS = 2000
const BACKOFF_MIN_MS = 50
const BACKOFF_MAX_MS = 2000
const KEEP_ALIVE_MS = 10_000
/** Milliseconds between two checks whether a server has loaded its data. */
const LOADING_PAUSE_MS = 250
/** Milliseconds for which `close` waits for commands that were sent. */
const CLOSE_WAIT_MS = 1000
/** A command beyond these limits is refused: a server that is slower than its callers must not fill the memory of this process. */
const MAX_IN_FLIGHT = 65_536
const MAX_UNSENT_BYTES = 64 * 1024 * 1024
/** A longer answer ends the connection: the longest that is asked for, a value of `state`, has 192 MiB. */
const MAX_REPLY_BYTES = 256 * 1024 * 1024

endConnectionsOnBadReplies()

export type RedisArgument = string | number | Buffer

export interface RedisOptions {
  /** Shown by CLIENT LIST and in the log: `heddle:<replica>:<role>`. */
  name: string
  log: WriteLog
  /** After so many milliseconds without an answer the connection is ended and replaced. Default 2000. */
  commandTimeoutMs?: number
  /** Scripts that are loaded into the server whenever the connection is established. */
  scripts?: readonly RedisScript[]
}

/**
 * `opening` → `ready` ⇄ `down` → `closed`. `opening` ends with the first success or failure, or after KV_CONNECT_TIMEOUT.
 * Only `close` leads to `closed`.
 */
type State = 'opening' | 'ready' | 'down' | 'closed'

/**
 * One connection to the key-value store, and the only user of ioredis. It turns off what ioredis does on its own: queueing, sending again, and going on
 * after a fault. At the first fault the connection of ioredis is ended and a new one is opened.
 *
 * - Commands are sent in the order of their calls; those of one turn of the event loop in one write.
 * - No command is sent twice. While the connection is down a command rejects at once. When a connection is lost, commands that were
 *   sent and not answered reject with `details.outcome` `unknown`, commands that were not sent with `not sent`.
 * - It reconnects for ever, at most 2 s apart, whatever the reason of the loss.
 */
export class RedisClient {
  readonly #kv: KvSettings
  readonly #options: RedisOptions
  readonly #redis: Redis
  readonly #log: ConnectionLog
  readonly #watch: Watch
  #state: State = 'opening'
  #fault: HeddleError | null = null
  /** Why the present connection is being ended; the first reason counts. */
  #loss: HeddleError | null = null
  #attempts = 0
  /** Bytes that have come since the last whole reply. */
  #replyBytes = 0
  #isCorked = false
  #closing: Promise<void> | null = null
  /** Resolves when the first attempt to connect has succeeded or failed; never rejects. */
  readonly opened: Promise<void>
  #endOpening!: () => void
  #endOpenLimit: () => void
  #endConnectLimit = (): void => {}
  #loadingTimer: NodeJS.Timeout | undefined
  #endTimer: NodeJS.Timeout | undefined
  readonly #upListeners = new Set<() => void>()
  #willTellUp = false
  readonly #channels = new Map<string, Set<(message: string) => void>>()

  /** Opens the connection, and keeps it open. The first commands wait for it, at most KV_CONNECT_TIMEOUT. */
  constructor(kv: KvSettings, options: RedisOptions) {
    this.#kv = kv
    this.#options = options
    this.#log = new ConnectionLog(options.log, options.name)
    const connectTimeoutMs = kv.kvConnectTimeout * 1000
    this.opened = new Promise((resolve) => {
      this.#endOpening = () => {
        this.#endOpenLimit()
        resolve()
      }
    })
    this.#endOpenLimit = ownLimit(connectTimeoutMs, () => this.#goDown(this.#fault ?? this.#tooLate()))
    const timeoutMs = options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS
    this.#watch = new Watch({
      timeoutMs,
      connectTimeoutMs,
      bytesRead: () => this.#redis.stream?.bytesRead ?? 0,
      onTimeout: () => this.#giveUp(unavailable(kv, `it has not answered for ${timeoutMs} ms`)),
      onSilence: () => this.#giveUp(unavailable(kv, 'it takes connections and does not answer: it may be frozen')),
    })
    const tls = clientTls(kv.kvTls, kv.kvCaFile)
    this.#redis = new Redis({
      host: kv.kvHost,
      port: kv.kvPort,
      db: kv.kvDb,
      ...(kv.kvUser === undefined ? {} : { username: kv.kvUser }),
      password: kv.kvPassword === '' ? undefined : kv.kvPassword,
      ...(tls === null ? {} : { tls }),
      // Its own counts wall time.
      connectTimeout: 0,
      connectionName: options.name.replace(/[^!-~]/g, '_'),
      keepAlive: KEEP_ALIVE_MS,
      disableClientInfo: true,
      lazyConnect: true,
      // A command must never be sent again or later: its caller may have given up, and may have tried again.
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      // ioredis ignores whether resubscribing succeeds, and its ready check writes to the console.
      autoResubscribe: false,
      enableReadyCheck: false,
      retryStrategy: () => this.#onClosed(),
    })
    // One of these errors is a database number that does not exist: ioredis itself would use database 0.
    this.#redis.on('error', (error: Error) => this.#giveUp(redisFault(error, '', kv)))
    this.#redis.on('connecting', () => {
      this.#endConnectLimit()
      this.#endConnectLimit = ownLimit(connectTimeoutMs, () => this.#giveUp(this.#tooLate()))
    })
    this.#redis.on('connect', () => {
      this.#endConnectLimit()
      this.#loss = null
      this.#replyBytes = 0
      this.#redis.stream.prependListener('data', this.#onBytes)
      this.#watch.connected()
    })
    this.#redis.on('ready', () => void this.#greet())
    this.#redis.on('end', () => this.#onEnd())
    this.#redis.on('message', (channel: string, message: string) => {
      this.#replyBytes = 0
      for (const listener of [...(this.#channels.get(channel) ?? [])]) listener(message)
    })
    this.#connect()
  }

  get isReady(): boolean {
    return this.#state === 'ready'
  }

  /** Why commands are refused at the moment; null when they are not, or when it is not known yet. */
  get fault(): HeddleError | null {
    return this.#state === 'ready' ? null : this.#fault
  }

  /**
   * Sends one command and returns its reply. Strings are UTF-8. While the connection opens for the first time it waits.
   * @throws KV_UNAVAILABLE, KV_REFUSED, KV_FULL, KV_READONLY, KV_WRONG_TYPE
   */
  command<T = unknown>(name: string, args: readonly RedisArgument[]): Promise<T> {
    if (this.#state === 'ready' && this.#closing === null) return this.#send(name, args) as Promise<T>
    if (this.#state === 'opening') return this.opened.then(() => this.command(name, args))
    return Promise.reject(this.#refusal('not sent'))
  }

  /** Runs a script by its hash. When the server does not know the hash, and so has not run it, the script is sent as text. */
  run<T = unknown>(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<T> {
    return this.command<T>('evalsha', [script.sha, keys.length, ...keys, ...args]).catch((fault: HeddleError) => {
      if (!causeOf(fault).startsWith('NOSCRIPT')) throw fault
      return this.command<T>('eval', [script.lua, keys.length, ...keys, ...args])
    })
  }

  /**
   * Subscribes to a channel, from the moment when this resolves. After a loss of the connection it subscribes again; messages published
   * meanwhile are lost. Use a separate connection, because an old server takes no other commands on it.
   * @returns a function that ends the subscription
   */
  async subscribe(channel: string, listener: (message: string) => void): Promise<() => void> {
    const listeners = this.#channels.get(channel) ?? new Set()
    this.#channels.set(channel, listeners.add(listener))
    const leave = (): void => {
      listeners.delete(listener)
      if (listeners.size > 0 || this.#channels.get(channel) !== listeners) return
      this.#channels.delete(channel)
      // If the connection is lost at this moment, its subscription is gone anyway.
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

  /** Calls back each time the connection is established, after the commands that waited for it. If it is already up, soon. */
  onUp(listener: () => void): () => void {
    this.#upListeners.add(listener)
    if (this.isReady && !this.#willTellUp) {
      setImmediate(() => {
        if (this.isReady && this.#upListeners.has(listener)) listener()
      })
    }
    return () => void this.#upListeners.delete(listener)
  }

  /** Sends a command in any state. */
  #send(name: string, args: readonly RedisArgument[]): Promise<unknown> {
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
    const command = new Command(name, args as RedisArgument[], { replyEncoding: 'utf8' })
    return (this.#redis.sendCommand(command) as Promise<unknown>).then(this.#onReply, this.#onFailure)
  }

  /** Waits up to a second for commands that were sent, then ends the connection, whatever the server does. */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  readonly #onBytes = ({ length }: Buffer): void => {
    this.#replyBytes += length
    if (this.#replyBytes > MAX_REPLY_BYTES)
      this.#giveUp(unavailable(this.#kv, `an answer of it is longer than ${MAX_REPLY_BYTES} bytes`))
  }

  readonly #onReply = (reply: unknown): unknown => {
    this.#replyBytes = 0
    this.#watch.answered()
    return reply
  }

  readonly #onFailure = (error: Error & { command?: { name: string } }): never => {
    this.#watch.answered()
    if (isAnswer(error)) throw redisFault(error, (error.command?.name ?? '').toUpperCase(), this.#kv)
    this.#fault ??= this.#loss ?? redisFault(error, '', this.#kv)
    throw this.#refusal(error.message.startsWith("Stream isn't writeable") ? 'not sent' : 'unknown')
  }

  /** A new error each time, so that its stack names the caller. */
  #refusal(outcome: Outcome): HeddleError {
    const fault = this.#loss ?? this.#fault
    if (fault === null || this.#state === 'closed') return unavailable(this.#kv, 'the connection is closed', outcome)
    return new HeddleError(fault.code, fault.message, { cause: fault.cause, details: { outcome } })
  }

  // ── up and down ───────────────────────────────────────────────────────────

  #connect(): void {
    // The event `error` has reported the reason.
    this.#redis.connect().catch(() => {})
  }

  /** The server has accepted the password. Checks whether it is ready for commands. */
  async #greet(): Promise<void> {
    const { stream } = this.#redis
    const fault = await this.#faultOfServer()
    if (stream !== this.#redis.stream || stream.destroyed || this.#state === 'closed') return
    if (fault !== null && !isLoading(fault)) return this.#giveUp(fault)
    if (fault !== null) {
      // The first commands keep waiting.
      if (this.#state === 'opening') this.#fault = fault
      else this.#goDown(fault)
      this.#loadingTimer = setTimeout(() => void this.#greet(), LOADING_PAUSE_MS)
      return
    }
    this.#watch.ready()
    this.#greeted()
    this.#state = 'ready'
    this.#fault = null
    this.#attempts = 0
    this.#endOpening()
    this.#log.up(placeOf(this.#kv))
  }

  /** The connection is about to be ready: what is sent now is sent before any command that needs it. A failure shows when that command runs. */
  #greeted(): void {
    const first = (name: string, args: readonly RedisArgument[]) => this.#send(name, args).catch(() => {})
    for (const { lua } of this.#options.scripts ?? []) first('script', ['LOAD', lua])
    for (const channel of this.#channels.keys()) first('subscribe', [channel])
    // After the commands that waited for the connection.
    this.#willTellUp = true
    setImmediate(() => {
      this.#willTellUp = false
      if (this.isReady) for (const listener of [...this.#upListeners]) listener()
    })
  }

  async #faultOfServer(): Promise<HeddleError | null> {
    try {
      const info = await this.#send('info', ['persistence'])
      return /^loading:1/m.test(String(info)) ? redisFault(new Error('LOADING'), '', this.#kv) : null
    } catch (fault) {
      // A user without the right to ask assumes that the server is ready, because it accepted the connection.
      return causeOf(fault as HeddleError).startsWith('NOPERM') ? null : (fault as HeddleError)
    }
  }

  /** Ends the present connection; `#onClosed` follows. */
  #giveUp(fault: HeddleError): void {
    if (this.#state === 'closed') return
    this.#loss ??= fault
    this.#goDown(this.#loss)
    this.#redis.stream?.destroy()
  }

  /** Called by ioredis before it rejects the commands that were sent. @returns milliseconds until it connects again */
  #onClosed(): number {
    this.#endConnectLimit()
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
    this.#endOpening()
    if (this.#closing === null) this.#log.down(fault.message)
  }

  /** ioredis considers some faults of a connection attempt final. */
  #onEnd(): void {
    if (this.#state !== 'closed') this.#endTimer = setTimeout(() => this.#connect(), BACKOFF_MAX_MS)
  }

  #tooLate(): HeddleError {
    return redisFault(Object.assign(new Error('too late'), { code: 'ETIMEDOUT' }), '', this.#kv)
  }

  async #end(): Promise<void> {
    if (this.isReady) await this.#watch.idle(CLOSE_WAIT_MS)
    this.#state = 'closed'
    this.#endConnectLimit()
    clearTimeout(this.#loadingTimer)
    clearTimeout(this.#endTimer)
    this.#watch.closed()
    this.#endOpening()
    this.#redis.disconnect()
    this.#redis.stream?.destroy()
  }
}

/** The error that came from the server or the socket itself. */
function causeOf({ cause }: HeddleError): string {
  return cause instanceof Error ? cause.message : ''
}

function isLoading(fault: HeddleError): boolean {
  return causeOf(fault).startsWith('LOADING')
}
