import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/wire.ts'
import { ensureGroup, listConsumers } from '../../runtime/streams/consumers.ts'
import { replicaOfConsumer } from '../../runtime/streams/keys.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { Takeover } from './claimer.ts'
import type { ReadingThread } from './reading-thread.ts'
import { type OwnPair, type Pair, pairKey } from './stream-group.ts'
import { seeGroups } from './trimming.ts'

/** Before something that the store refused is tried again, milliseconds. */
const RETRY_MS = 500

export interface GroupOpenerOptions {
  redis: RedisClient
  /** REPLICA_ID. */
  replica: string
  takeover: Takeover
  /** False when this process begins nothing any more. */
  mayOpen: () => boolean
  /** The thread may read it from now on. */
  onOpen: (thread: ReadingThread, pair: Pair) => void
}

/** Makes the groups that this process reads, and takes over what a former process of its name has left in them: before anybody reads. */
export class GroupOpener {
  readonly #options: GroupOpenerOptions
  /** Pairs whose group is there. */
  readonly #made = new Map<string, Promise<void>>()
  /** Pairs whose former entries are taken over. */
  readonly #inherited = new Map<string, Promise<void>>()
  /** Pairs whose group the store refuses to make, and why. */
  readonly #refused = new Map<string, string>()
  #opening = 0

  constructor(options: GroupOpenerOptions) {
    this.#options = options
  }

  /** Some are on their way to be opened, or wait for a store that refuses. */
  get isOpening(): boolean {
    return this.#opening > 0
  }

  /** Why the store does not let a group be made, though it answers; null when it does. */
  get refusal(): string | null {
    const [refusal] = this.#refused.values()
    return refusal ?? null
  }

  /** @param seat gives the subscriber its seat in the hub, when all that is published from then on is its */
  async open(thread: ReadingThread, pair: OwnPair, seat: () => void = () => {}): Promise<void> {
    const key = pairKey(pair.stream, pair.group)
    const isWanted = (): boolean => this.#options.mayOpen() && thread.pairs.includes(pair)
    let isSeated = false
    this.#opening++
    while (isWanted()) {
      try {
        await once(this.#made, key, () => this.#make(pair))
        if (!isWanted()) break
        // Before the takeover: the hub must know who is to get what was left.
        if (!isSeated) seat()
        isSeated = true
        await once(this.#inherited, key, () => this.#takeOverFormer(pair))
        if (isWanted()) this.#options.onOpen(thread, pair)
        break
      } catch (error) {
        const isAway = error instanceof HeddleError && error.code === 'KV_UNAVAILABLE'
        if (!isAway) this.#refused.set(key, `${pair.stream}: ${messageOf(error)}`)
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
    this.#opening--
    this.#refused.delete(key)
  }

  async #make(pair: Pair): Promise<void> {
    const { redis } = this.#options
    await ensureGroup(redis, pair.stream, pair.group, '$')
    if (!pair.isBroadcast) await seeGroups(redis, [pair])
  }

  async #takeOverFormer({ stream, group, isBroadcast }: Pair): Promise<void> {
    if (isBroadcast) return
    const { redis, replica, takeover } = this.#options
    for (const { name, pending } of await listConsumers(redis, stream, group)) {
      if (pending > 0 && replicaOfConsumer(name) === replica) await takeover.ofConsumer(stream, group, name, null)
    }
  }

  /** A group that is one thread's own goes with it. Should this fail, it goes with the replica. */
  destroy(pair: Pair): void {
    const { stream, group } = pair
    this.#made.delete(pairKey(stream, group))
    this.#options.redis.command('xgroup', ['DESTROY', stream, group]).catch(() => {})
  }
}

/** Once for all threads: the second must not take over what the first has begun to read. One that failed is done again. */
function once(done: Map<string, Promise<void>>, key: string, work: () => Promise<void>): Promise<void> {
  let doing = done.get(key)
  if (doing === undefined) {
    doing = work()
    done.set(key, doing)
    doing.catch(() => done.delete(key))
  }
  return doing
}
