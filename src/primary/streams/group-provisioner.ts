// Makes the groups of streams.
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { ensureGroup, listConsumers } from '../../runtime/streams/consumers.ts'
import { replicaOfConsumer } from '../../runtime/streams/keys.ts'
import { retryWhile } from '../../runtime/streams/publisher.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { Claimer } from './claimer.ts'
import { groupKey, type OwnStreamGroup, type ReadingThread, type StreamGroup } from './reading-thread.ts'
import { markGroupsSeen } from './trimmer.ts'

/** Work that is done once for each key, whoever asks for it. */
class OncePerKey {
  readonly #done = new Map<string, Promise<void>>()

  /** Resolves when it is done. What has failed is done again by the next one who asks. */
  run(key: string, work: () => Promise<void>): Promise<void> {
    let doing = this.#done.get(key)
    if (doing === undefined) {
      doing = work()
      this.#done.set(key, doing)
      doing.catch(() => this.#done.delete(key))
    }
    return doing
  }

  /** The next one who asks has it done again. */
  forget(key: string): void {
    this.#done.delete(key)
  }
}

/** Before something that the store refused is tried again, milliseconds. */
const RETRY_MS = 500

interface GroupProvisionerOptions {
  redis: RedisClient
  /** REPLICA_ID. */
  replica: string
  claimer: Claimer
  /** False when this process begins nothing any more. */
  mayOpen: () => boolean
  /** The thread may read it from now on. */
  onOpen: (thread: ReadingThread, streamGroup: StreamGroup) => void
}

/**
 * Creates the groups that this process reads. Before a thread may read one, what a former process of the same name has left in it is
 * claimed for the hub. Both are done once per group for all threads: the second thread must not claim what the first has begun to read.
 */
export class GroupProvisioner {
  readonly #options: GroupProvisionerOptions
  readonly #created = new OncePerKey()
  readonly #claimed = new OncePerKey()
  /** By group, why the store refuses to create it. */
  readonly #refusals = new Map<string, string>()
  #opening = 0

  constructor(options: GroupProvisionerOptions) {
    this.#options = options
  }

  /** Some groups are being opened, or wait for a store that refuses. */
  get isOpening(): boolean {
    return this.#opening > 0
  }

  /** Why the store does not let a group be created, though it answers; null when it does. */
  get refusal(): string | null {
    const [refusal] = this.#refusals.values()
    return refusal ?? null
  }

  /**
   * Lets a thread read a group, as soon as the store permits.
   * @param addInstance gives the subscriber its instance in the hub; called once, when the group gets all that is published from then on
   */
  async open(thread: ReadingThread, streamGroup: OwnStreamGroup, addInstance: () => void = () => {}): Promise<void> {
    const key = groupKey(streamGroup.stream, streamGroup.group)
    const isWanted = (): boolean => this.#options.mayOpen() && thread.streamGroups.includes(streamGroup)
    let hasInstance = false
    const attempt = async (): Promise<void> => {
      await this.#created.run(key, () => this.#create(streamGroup))
      if (!isWanted()) return
      // Before anything is claimed: the hub must know who is to get it.
      if (!hasInstance) addInstance()
      hasInstance = true
      await this.#claimed.run(key, () => this.#claimFromFormer(streamGroup))
      if (isWanted()) this.#options.onOpen(thread, streamGroup)
    }
    this.#opening++
    await retryWhile(isWanted, attempt, {
      pauseMs: RETRY_MS,
      onFault: (fault) => this.#noteRefusal(key, streamGroup, fault),
    })
    this.#opening--
    this.#refusals.delete(key)
  }

  async #create(streamGroup: StreamGroup): Promise<void> {
    const { redis } = this.#options
    await ensureGroup(redis, streamGroup.stream, streamGroup.group, '$')
    if (!streamGroup.isBroadcast) await markGroupsSeen(redis, [streamGroup])
  }

  async #claimFromFormer({ stream, group, isBroadcast }: StreamGroup): Promise<void> {
    if (isBroadcast) return
    const { redis, replica, claimer } = this.#options
    for (const { name, pending } of await listConsumers(redis, stream, group)) {
      if (pending > 0 && replicaOfConsumer(name) === replica) await claimer.claimFromConsumer(stream, group, name, null)
    }
  }

  /** A store that does not answer has not refused. */
  #noteRefusal(key: string, { stream }: StreamGroup, fault: unknown): void {
    const isAway = fault instanceof HeddleError && fault.code === 'KV_UNAVAILABLE'
    if (!isAway) this.#refusals.set(key, `${stream}: ${messageOf(fault)}`)
  }

  /** A group that is one thread's own ends with the thread. Should this fail, it ends with the replica. */
  destroy({ stream, group }: StreamGroup): void {
    this.#created.forget(groupKey(stream, group))
    this.#options.redis.command('xgroup', ['DESTROY', stream, group]).catch(() => {})
  }
}
