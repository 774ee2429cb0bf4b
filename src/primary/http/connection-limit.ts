// No more connections than the process may have descriptors.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { networkOf } from '../../core/http/network.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { Log } from '../logging/process-log.ts'
import type { ListenSocket } from './listening.ts'

/** Descriptors that are kept for everything but connections, at least: files, databases, threads that start. */
const RESERVED_MIN_DESCRIPTORS = 64
/** And this share of the limit. */
const RESERVED_SHARE = 0.1
/** New connections are taken again when no more than this share of them is open. */
const RESUME_SHARE = 0.95
/** The log tells of one pause in this time, milliseconds: a crowd at the limit comes and goes. */
const TOLD_EVERY_MS = 60_000
/** How often the system is asked who has the connections, milliseconds: of 10,000 it takes some 10 ms to tell. */
const PEERS_MS = 1_000

/**
 * Takes no new connections while as many are open as the process may have by its limit of descriptors (`ulimit -n`). Clients are refused
 * then, so that a proxy goes elsewhere. Without a descriptor left, the HTTP library would try to accept the same connection over and over,
 * with a whole core. An operator still comes in at the address of `/system`.
 */
export class ConnectionLimit {
  readonly #log: Log
  #listenSocket: ListenSocket | null = null
  /** Descriptors that the process may have; infinite where the system does not tell. */
  #descriptors = Number.POSITIVE_INFINITY
  /** Those that it had before its first connection. */
  #usedOtherwise = 0
  /** Connections that are open, WebSockets included. */
  open = 0
  /** Times that connections were refused since the start. */
  pauses = 0
  /** Since when no connection is taken; null while they are. */
  #pausedMs: number | null = null
  #toldMs = Number.NEGATIVE_INFINITY
  #isListenFaultTold = false
  #isReopening = false
  /** Connections by network, when they were last looked at, and since. */
  #peers = new Map<string, number>()
  #peersMs = Number.NEGATIVE_INFINITY
  /** Told of a client that has half of the connections. */
  onCrowd: (address: string) => void = () => {}
  /** True for a proxy that is trusted: its connections are those of its clients. */
  isProxy: (address: string) => boolean = () => false

  constructor(log: Log) {
    this.#log = log
  }

  /** @param listenSocket that of the public address, open */
  guard(listenSocket: ListenSocket): void {
    this.#listenSocket = listenSocket
    this.#descriptors = descriptorLimit(Number.POSITIVE_INFINITY)
    this.#usedOtherwise = usedDescriptors()
  }

  /** Connections that may be open. */
  get max(): number {
    return Math.max(1, Math.floor(this.#descriptors - this.#usedOtherwise - reservedOf(this.#descriptors)))
  }

  /** Those that the process has, connections included, and those that it may have. */
  descriptors(): { used: number; limit: number } {
    if (this.#listenSocket !== null) this.#descriptors = descriptorLimit(this.#descriptors)
    return { used: usedDescriptors(), limit: this.#descriptors }
  }

  /** Why no connection is taken; null while they are. */
  get fault(): string | null {
    if (this.#pausedMs === null) return null
    const { open, max } = this
    return `no new connections are taken: ${open} connections are open of ${max} (ulimit -n is ${this.#descriptors})`
  }

  /**
   * @param change 1 for a connection that opens, -1 for one that is gone
   * @param peer the address of its client
   * @returns false for a connection that is to be closed, because its client has half of all that there may be
   */
  count(change: number, peer: () => string = () => ''): boolean {
    this.open += change
    if (change > 0 && 2 * this.open > this.max && this.#holdsHalf(peer())) {
      this.onCrowd(peer())
      return false
    }
    this.#pauseWhenFull(change)
    return true
  }

  #pauseWhenFull(change: number): void {
    if (change < 0 || this.#pausedMs !== null || this.#listenSocket === null || this.open < this.max) return
    this.#pausedMs = steadyMs()
    this.pauses++
    this.#listenSocket.shut()
    if (this.#pausedMs - this.#toldMs < TOLD_EVERY_MS) return
    this.#toldMs = this.#pausedMs
    const message = `Not ready: ${this.fault}. They are taken again when some have closed; raise ulimit -n`
    const fields = { connections: this.open, connections_max: this.max, descriptors: this.#descriptors }
    this.#log('WARNING', message, 'http', fields)
  }

  /** A connection that is gone has no address any more, so that the system is asked who has them; it does not tell everywhere. */
  #holdsHalf(address: string): boolean {
    if (this.#listenSocket === null || address === '' || this.isProxy(address)) return false
    const nowMs = steadyMs()
    if (nowMs - this.#peersMs >= PEERS_MS) {
      this.#peersMs = nowMs
      this.#peers = this.#listenSocket.peers()
    }
    const network = networkOf(address)
    const held = this.#peers.get(network) ?? 0
    if (2 * held >= this.max) return true
    this.#peers.set(network, held + 1)
    return false
  }

  /** Called regularly while the listener is open. */
  check(): void {
    if (this.#pausedMs === null) return
    // An operator may have raised it meanwhile (`prlimit`).
    this.#descriptors = descriptorLimit(this.#descriptors)
    if (this.open > this.max * RESUME_SHARE || this.#isReopening) return
    this.#isReopening = true
    void this.#reopen()
  }

  async #reopen(): Promise<void> {
    const isOpen = await this.#listenSocket!.reopen()
    this.#isReopening = false
    if (this.#pausedMs === null) return
    if (isOpen) {
      const isTold = this.#toldMs === this.#pausedMs || this.#isListenFaultTold
      const forMs = Math.round(steadyMs() - this.#pausedMs)
      this.#pausedMs = null
      this.#isListenFaultTold = false
      if (isTold) this.#log('INFO', `New connections are taken again, after ${forMs} ms`, 'http')
    } else if (!this.#isListenFaultTold) {
      this.#isListenFaultTold = true
      this.#log('ERROR', 'Cannot listen again on the address: another process has taken it. It is tried on', 'http')
    }
  }
}

/**
 * Node raises the soft limit to the hard one when it starts. Source: proc(5), /proc/[pid]/limits.
 * @param before what it was: without a descriptor left it cannot be asked
 */
function descriptorLimit(before: number): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]
    return limit === undefined ? before : Number(limit)
  } catch {
    return before
  }
}

const reservedOf = (limit: number): number => Math.max(RESERVED_MIN_DESCRIPTORS, limit * RESERVED_SHARE)

/** Files of plugins get no descriptor from this number on. The system gives the lowest that is free; half of those that connections leave are for threads that start. */
export function descriptorsOfPlugins(): number {
  const limit = descriptorLimit(Number.POSITIVE_INFINITY)
  return Number.isFinite(limit) ? limit - Math.ceil(reservedOf(limit) / 2) : limit
}

/** From Linux 6.2 on the size of this folder is their number, and asking for it takes none. */
export const isCountCheap = (): boolean => (statSync('/proc/self/fd', { throwIfNoEntry: false })?.size ?? 0) > 0

function usedDescriptors(): number {
  try {
    return statSync('/proc/self/fd').size || readdirSync('/proc/self/fd').length
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EMFILE' ? Number.POSITIVE_INFINITY : 0
  }
}
