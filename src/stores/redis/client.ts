// A client of Redis, and its scripts.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { HeddleError } from '../../core/errors/catalogue.ts'
import { type ConnectionOptions, causeOf, type RedisArgument, RedisConnection } from './connection.ts'
import type { KvSettings } from './fault.ts'

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

export type { RedisArgument }

export interface RedisOptions extends ConnectionOptions {
  /** Scripts that are loaded into the server whenever the connection is established. */
  scripts?: readonly RedisScript[]
}

/**
 * One connection to the key-value store.
 *
 * - Commands are sent in the order of their calls; those of one turn of the event loop in one write.
 * - No command is sent twice. While the connection is down a command rejects at once. When a connection is lost, commands that were
 *   sent and not answered reject with `details.outcome` `unknown`, commands that were not sent with `not sent`.
 * - It reconnects for ever, at most 2 s apart, whatever the reason of the loss.
 */
export class RedisClient extends RedisConnection {
  readonly #scripts: readonly RedisScript[]
  readonly #upListeners = new Set<() => void>()
  #willTellUp = false
  readonly #channels = new Map<string, Set<(message: string) => void>>()

  /** Opens the connection, and keeps it open. The first commands wait for it, at most KV_CONNECT_TIMEOUT. */
  constructor(kv: KvSettings, { scripts = [], ...options }: RedisOptions) {
    super(kv, options)
    this.#scripts = scripts
  }

  protected override greeted(): void {
    // They are sent before any command that needs them. A failure shows when that command runs.
    for (const { lua } of this.#scripts) this.#sendFirst('script', ['LOAD', lua])
    for (const channel of this.#channels.keys()) this.#sendFirst('subscribe', [channel])
    // After the commands that waited for the connection.
    this.#willTellUp = true
    setImmediate(() => {
      this.#willTellUp = false
      if (this.isReady) for (const listener of [...this.#upListeners]) listener()
    })
  }

  protected override heard(channel: string, message: string): void {
    for (const listener of [...(this.#channels.get(channel) ?? [])]) listener(message)
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

  #sendFirst(name: string, args: readonly RedisArgument[]): void {
    this.send(name, args).catch(() => {})
  }
}
