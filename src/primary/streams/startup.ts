import { setTimeout as sleep } from 'node:timers/promises'
import type { LogLevel } from '../../contracts/logger.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { until } from '../../core/schedule/waiting.ts'
import { retryWhile } from '../../runtime/streams/publisher.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { GroupProvisioner } from './group-provisioner.ts'
import type { ReadingThreads } from './reading-threads.ts'
import type { ReplicaLock } from './replica-lock.ts'

/** Before the name is asked for again that the store did not give, milliseconds. */
const RETRY_MS = 500
/** How often it is checked whether all groups are open, milliseconds. */
const LOOK_MS = 5

export interface StreamStartupOptions {
  redis: RedisClient
  lock: ReplicaLock
  groups: GroupProvisioner
  threads: ReadingThreads
  /** This process has its name: reading may begin. */
  onHeld: () => void
  /** Another process has the name, as it turned out after the boot. */
  onTaken: (message: string) => void
  log: (level: LogLevel, message: string) => void
}

/** Opens the streams of a process: it takes its name, however long the store keeps it waiting, and its threads get their groups. */
export class StreamStartup {
  readonly #options: StreamStartupOptions
  /** Why the store does not give this process its name, though it answers. */
  #refusal: string | null = null
  #wasOpen = false
  #isStopping = false

  constructor(options: StreamStartupOptions) {
    this.#options = options
  }

  /**
   * When the store does not answer it goes on trying, and the process serves what it can.
   * @throws REPLICA_ID_TAKEN
   */
  async start(): Promise<void> {
    await this.#options.redis.opened
    try {
      await this.#takeName()
    } catch (error) {
      if (isTaken(error)) throw error
      this.#refused(error)
      void this.#takeNameLater()
    }
  }

  async #takeName(): Promise<void> {
    const { lock, onHeld } = this.#options
    await lock.acquire()
    this.#refusal = null
    // When the process is ending, the name is only to be given back.
    if (!this.#isStopping) onHeld()
  }

  async #takeNameLater(): Promise<void> {
    await sleep(RETRY_MS)
    await retryWhile(
      () => !this.#isStopping,
      () => this.#takeName(),
      {
        pauseMs: RETRY_MS,
        onFault: (error) => {
          if (isTaken(error)) this.#options.onTaken((error as Error).message)
          else this.#refused(error)
        },
        isFinal: isTaken,
      },
    )
  }

  #refused(error: unknown): void {
    const fault = messageOf(error)
    const isAway = error instanceof HeddleError && error.code === 'KV_UNAVAILABLE'
    if (isAway || fault === this.#refusal) return
    this.#refusal = fault
    this.#options.log('ERROR', `The event streams cannot be used: ${fault}. Trying again until it works.`)
  }

  /** Begins nothing any more. */
  stop(): void {
    this.#isStopping = true
  }

  /** Why events do not flow; null when they do. */
  get fault(): string | null {
    const { redis, groups } = this.#options
    if (redis.fault !== null) return redis.fault.message
    if (this.#isOpen) return null
    return this.#refusal ?? groups.refusal ?? 'the groups of the event streams are not made yet'
  }

  get #isOpen(): boolean {
    const { threads, groups } = this.#options
    // The primary's plugins subscribe after it has begun.
    return threads.areStarted && !groups.isOpening
  }

  /** True when all threads have been able to read at some time: before, this process should get no traffic. */
  get wasOpen(): boolean {
    this.#wasOpen ||= this.#isOpen
    return this.#wasOpen
  }

  /** Resolves when all threads can read, or when it is known that the store does not answer or refuses. */
  async done(): Promise<void> {
    const { redis, groups } = this.#options
    const isHopeful = (): boolean => redis.fault === null && groups.refusal === null && this.#refusal === null
    await until(() => this.wasOpen || !isHopeful() || this.#isStopping, Number.POSITIVE_INFINITY, LOOK_MS)
  }
}

const isTaken = (error: unknown): boolean => error instanceof HeddleError && error.code === 'REPLICA_ID_TAKEN'
