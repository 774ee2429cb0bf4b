import type { HeddleError } from '../../core/errors/catalogue.ts'
import { Connection, type ConnectionOptions, causeOf, type RedisArgument } from './connection.ts'
import type { KvSettings } from './fault.ts'
import type { RedisScript } from './script.ts'

export type { RedisArgument }

export interface RedisOptions extends ConnectionOptions {
  /** Loaded whenever the connection comes up. */
  scripts?: readonly RedisScript[]
}

/** Opens a connection of its own and keeps it open; the first commands may wait for it, KV_CONNECT_TIMEOUT at most. */
export function openRedis(kv: KvSettings, options: RedisOptions): RedisClient {
  return new RedisClient(kv, options)
}

/**
 * One connection to the key-value store.
 *
 * - Commands are sent in the order of their calls, those of one turn of the loop in one write.
 * - No command is ever sent twice and none waits for a connection that is down: it rejects at once. What was under way
 *   when a connection was lost rejects with `details.outcome` `unknown`, what was not sent with `not sent`.
 * - It connects again for ever, 2 s apart at most, whatever the reason of the loss.
 */
export class RedisClient {
  readonly #connection: Connection
  readonly #upListeners = new Set<() => void>()
  #willTellUp = false
  readonly #channels = new Map<string, Set<(message: string) => void>>()

  constructor(kv: KvSettings, options: RedisOptions) {
    const { scripts = [], ...connectionOptions } = options
    this.#connection = new Connection(kv, connectionOptions, {
      onGreeted: () => {
        // These go out before any command that relies on them, and what becomes of them shows there.
        for (const { lua } of scripts) this.#sendFirst('script', ['LOAD', lua])
        for (const channel of this.#channels.keys()) this.#sendFirst('subscribe', [channel])
        // Commands that have waited for the connection go first.
        this.#willTellUp = true
        setImmediate(() => {
          this.#willTellUp = false
          if (this.isReady) for (const listener of [...this.#upListeners]) listener()
        })
      },
      onMessage: (channel, message) => {
        for (const listener of [...(this.#channels.get(channel) ?? [])]) listener(message)
      },
    })
  }

  get isReady(): boolean {
    return this.#connection.isReady
  }

  /** Why commands are refused at the moment; null when they are not, or nobody knows yet. */
  get fault(): HeddleError | null {
    return this.#connection.fault
  }

  /** Resolves when the first attempt to connect has succeeded or failed; never rejects. */
  get opened(): Promise<void> {
    return this.#connection.opened
  }

  /**
   * Sends one command and gives its reply: strings are UTF-8.
   * @throws KV_UNAVAILABLE, KV_REFUSED, KV_FULL, KV_READONLY, KV_WRONG_TYPE
   */
  command<T = unknown>(name: string, args: readonly RedisArgument[]): Promise<T> {
    return this.#connection.call(name, args, 'utf8') as Promise<T>
  }

  /** As `command`, with Buffers in the place of strings. */
  commandBuffer<T = unknown>(name: string, args: readonly RedisArgument[]): Promise<T> {
    return this.#connection.call(name, args, null) as Promise<T>
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
    if (this.isReady && !this.#willTellUp) {
      setImmediate(() => {
        if (this.isReady && this.#upListeners.has(listener)) listener()
      })
    }
    return () => void this.#upListeners.delete(listener)
  }

  /** Leaves commands that are under way a second, then ends the connection, whatever the server does. */
  close(): Promise<void> {
    return this.#connection.close()
  }

  #sendFirst(name: string, args: readonly RedisArgument[]): void {
    this.#connection.send(name, args, 'utf8').catch(() => {})
  }
}
