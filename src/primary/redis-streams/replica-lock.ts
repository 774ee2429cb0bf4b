// Ensures one process for each replica id.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { replicaKey } from '../../runtime/redis-streams/keys.ts'
import { SCRIPTS } from '../../runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import { identityIn, isKnownDead, ownIdentity, type ProcessIdentity } from '../event-store/process-identity.ts'

/** Time after its last renewal during which a replica counts as alive, milliseconds. */
const REPLICA_TTL_MS = 15_000
const RENEW_MS = 5000
const LOOK_MS = 500
/** A name still held this long after it should have expired is in use, milliseconds. */
const GRACE_MS = 1000

export interface Holder extends ProcessIdentity {
  /** Different for each process that ever held a name. */
  readonly token: string
  /** ISO 8601 UTC. */
  readonly since: string
}

interface Options {
  /**
   * Another process has the name: this one stood still for longer than REPLICA_TTL_MS, or was cut off from the store.
   * Called once; the lock is not renewed after it.
   */
  onLost: (holder: Partial<Holder>) => void
  /** Default REPLICA_TTL_MS and a third of it. */
  ttlMs?: number
  renewMs?: number
}

/**
 * Ensures that only one process has a REPLICA_ID: consumers are named after it, so two processes with one name would take each other's
 * entries for their own. Its key in the store also shows that the replica is alive.
 */
export class ReplicaLock {
  readonly #redis: RedisClient
  readonly #replicaId: string
  readonly #options: Options
  readonly #ttlMs: number
  #token = ''
  /** free ──► held ──┬──► released; another process has the name ──► lost */
  #status: 'free' | 'held' | 'lost' | 'released' = 'free'
  #timer: NodeJS.Timeout | undefined

  constructor(redis: RedisClient, replicaId: string, options: Options) {
    this.#redis = redis
    this.#replicaId = replicaId
    this.#options = options
    this.#ttlMs = options.ttlMs ?? REPLICA_TTL_MS
  }

  get isHeld(): boolean {
    return this.#status === 'held'
  }

  /** True when another process has the name. */
  get isLost(): boolean {
    return this.#status === 'lost'
  }

  /**
   * Takes the name and keeps it. The name of a dead process on this host is free at once. Any other name is free when it was not
   * renewed for REPLICA_TTL_MS, so the call may take that long.
   * @throws REPLICA_ID_TAKEN when the holder lives, and the errors of the store
   */
  async acquire(): Promise<void> {
    this.#token = JSON.stringify({
      token: randomBytes(16).toString('hex'),
      ...ownIdentity(),
      since: new Date().toISOString(),
    } satisfies Holder)
    const deadlineMs = performance.now() + this.#ttlMs + GRACE_MS
    let leftMs = Number.POSITIVE_INFINITY
    for (let holder = await this.#take(); holder !== this.#token; holder = await this.#take()) {
      if (isKnownDead(identityIn(holder))) {
        await this.#free(holder)
        continue
      }
      const nowLeftMs = await this.#redis.command<number>('pttl', [replicaKey(this.#replicaId)])
      // The remaining time grows only when the holder renews it.
      if (nowLeftMs > leftMs || performance.now() > deadlineMs) throw this.#taken(holder)
      leftMs = nowLeftMs
      await sleep(leftMs < 0 ? LOOK_MS : Math.max(1, Math.min(LOOK_MS, leftMs)))
    }
    this.#status = 'held'
    this.#timer = setInterval(() => void this.#renew(), this.#options.renewMs ?? RENEW_MS)
  }

  /** Gives the name back, so that the next process with this name need not wait. */
  async release(): Promise<void> {
    clearInterval(this.#timer)
    if (this.#status !== 'held') return
    this.#status = 'released'
    await this.#free(this.#token)
  }

  /** Takes the name if it is free. @returns the token of its holder */
  async #take(): Promise<string> {
    const args = [replicaKey(this.#replicaId), this.#token, 'NX', 'GET', 'PX', this.#ttlMs]
    return (await this.#redis.command<string | null>('set', args)) ?? this.#token
  }

  #free(token: string): Promise<unknown> {
    return this.#redis.run(SCRIPTS.freeReplica, [replicaKey(this.#replicaId)], [token])
  }

  async #renew(): Promise<void> {
    try {
      const holder = await this.#take()
      // Should it have expired since, and another process have it, that process gets a little more time.
      if (holder === this.#token) await this.#redis.command('pexpire', [replicaKey(this.#replicaId), this.#ttlMs])
      if (holder === this.#token || this.#status !== 'held') return
      this.#status = 'lost'
      clearInterval(this.#timer)
      this.#options.onLost(identityIn<Holder>(holder))
    } catch {
      // The connection logs its loss. The next renewal takes the name again, unless another process has it by then.
    }
  }

  #taken(token: string): HeddleError {
    const { host, pid, since } = identityIn<Holder>(token)
    const other =
      host === undefined ? token.slice(0, 200) : `process ${pid} on ${host}, which has had it since ${since}`
    return new HeddleError(
      'REPLICA_ID_TAKEN',
      `The REPLICA_ID ${this.#replicaId} is in use by ${other}: give each replica a REPLICA_ID of its own`,
    )
  }
}
