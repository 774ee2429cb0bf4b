import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/wire.ts'
import { ensureGroup, listConsumers } from '../../runtime/streams/consumers.ts'
import { replicaOfConsumer } from '../../runtime/streams/keys.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { Claimer } from './claimer.ts'
import type { ReadingThread } from './reading-thread.ts'
import { groupKey, type OwnStreamGroup, type StreamGroup } from './stream-group.ts'
import { markGroupsSeen } from './trimming.ts'

/** Before something that the store refused is tried again, milliseconds. */
const RETRY_MS = 500

export interface GroupProvisionerOptions {
  redis: RedisClient
  /** REPLICA_ID. */
  replica: string
  claimer: Claimer
  /** False when this process begins nothing any more. */
  mayOpen: () => boolean
  /** The thread may read it from now on. */
  onOpen: (thread: ReadingThread, streamGroup: StreamGroup) => void
}

/** Makes the groups that this process reads, and takes over what a former process of its name has left in them: before anybody reads. */
export class GroupProvisioner {
  readonly #options: GroupProvisionerOptions
  /** Groups whose group is there. */
  readonly #made = new Map<string, Promise<void>>()
  /** Groups whose former entries are taken over. */
  readonly #inherited = new Map<string, Promise<void>>()
  /** Groups whose group the store refuses to make, and why. */
  readonly #refused = new Map<string, string>()
  #opening = 0

  constructor(options: GroupProvisionerOptions) {
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

  /** @param instance gives the subscriber its instance in the hub, when all that is published from then on is its */
  async open(thread: ReadingThread, streamGroup: OwnStreamGroup, instance: () => void = () => {}): Promise<void> {
    const key = groupKey(streamGroup.stream, streamGroup.group)
    const isWanted = (): boolean => this.#options.mayOpen() && thread.streamGroups.includes(streamGroup)
    let isSeated = false
    this.#opening++
    while (isWanted()) {
      try {
        await once(this.#made, key, () => this.#make(streamGroup))
        if (!isWanted()) break
        // Before the claimer: the hub must know who is to get what was left.
        if (!isSeated) instance()
        isSeated = true
        await once(this.#inherited, key, () => this.#takeOverFormer(streamGroup))
        if (isWanted()) this.#options.onOpen(thread, streamGroup)
        break
      } catch (error) {
        const isAway = error instanceof HeddleError && error.code === 'KV_UNAVAILABLE'
        if (!isAway) this.#refused.set(key, `${streamGroup.stream}: ${messageOf(error)}`)
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
    this.#opening--
    this.#refused.delete(key)
  }

  async #make(streamGroup: StreamGroup): Promise<void> {
    const { redis } = this.#options
    await ensureGroup(redis, streamGroup.stream, streamGroup.group, '$')
    if (!streamGroup.isBroadcast) await markGroupsSeen(redis, [streamGroup])
  }

  async #takeOverFormer({ stream, group, isBroadcast }: StreamGroup): Promise<void> {
    if (isBroadcast) return
    const { redis, replica, claimer } = this.#options
    for (const { name, pending } of await listConsumers(redis, stream, group)) {
      if (pending > 0 && replicaOfConsumer(name) === replica) await claimer.claimFromConsumer(stream, group, name, null)
    }
  }

  /** A group that is one thread's own goes with it. Should this fail, it goes with the replica. */
  destroy(streamGroup: StreamGroup): void {
    const { stream, group } = streamGroup
    this.#made.delete(groupKey(stream, group))
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
