import type { LogLevel } from '../../contracts/logger.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/wire.ts'
import { DELAYED } from '../../runtime/streams/keys.ts'
import { LAST_OF_KEY_MS } from '../../runtime/streams/publishing.ts'
import { SCRIPTS } from '../../runtime/streams/scripts.ts'
import type { RedisClient } from '../../stores/redis/client.ts'

/** Events that one step moves: what it does holds up the server. */
const BATCH = 100
/** Between two looks while some wait: others may have added earlier ones. */
const WAITING_LOOK_MS = 250
/** Between two looks while none waits. */
const IDLE_LOOK_MS = 1000
/** After an event could not be written into its stream. */
const POSTPONE_MS = 5000
/** Between two lines of one trouble. */
const REMINDER_MS = 60_000

export interface Release {
  released: number
  /** Null when none waits. */
  nextInMs: number | null
}

interface Options {
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
  /** Cuts the streams to about so many entries, read or not. */
  maxLen?: number
}

/**
 * Moves delayed events into their streams when their time has come. Every replica does, so that they survive the one that
 * published them; the store gives each event to one of them.
 */
export class DelayedEvents {
  readonly #redis: RedisClient
  readonly #options: Options
  #status: 'idle' | 'started' | 'stopped' = 'idle'
  #timer: NodeJS.Timeout | undefined
  /** When the timer is set for. */
  #lookAtMs = Number.POSITIVE_INFINITY
  #looking: Promise<void> | null = null
  #toldMs = Number.NEGATIVE_INFINITY

  constructor(redis: RedisClient, options: Options) {
    this.#redis = redis
    this.#options = options
  }

  start(): void {
    if (this.#status !== 'idle') return
    this.#status = 'started'
    this.#lookIn(0)
  }

  /** Resolves when a look that is under way has ended. */
  async stop(): Promise<void> {
    this.#status = 'stopped'
    clearTimeout(this.#timer)
    await this.#looking
  }

  /** This process has delayed an event by so much: it is released in time, though none was waiting before. */
  dueIn(delayMs: number): void {
    if (this.#status === 'started' && performance.now() + delayMs < this.#lookAtMs) this.#lookIn(delayMs)
  }

  /** One step, as often as there are more than it takes. */
  async release(): Promise<Release> {
    const args = [BATCH, this.#options.maxLen ?? '', LAST_OF_KEY_MS, POSTPONE_MS]
    const reply = await this.#redis.run<[number, number, number, string, number]>(SCRIPTS.releaseDue, [DELAYED], args)
    const [released, nextInMs, failed, stream, strange] = reply
    if (failed > 0) {
      this.#tell(
        'ERROR',
        `Delayed events wait longer: ${stream} or a key of its order holds something else than this service keeps there; delete it`,
        { events: failed },
      )
    }
    if (strange > 0) {
      this.#options.log(
        'WARNING',
        `${DELAYED} holds what is no delayed event; it stays there and is not looked at again`,
        {
          members: strange,
        },
      )
    }
    return { released, nextInMs: nextInMs < 0 ? null : nextInMs }
  }

  /** Never two looks at a time: a look that is under way sets the timer when it ends. */
  #lookIn(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#lookAtMs = performance.now() + delayMs
    if (this.#looking !== null) return
    this.#timer = setTimeout(() => {
      this.#looking = this.#look().finally(() => {
        this.#looking = null
        if (this.#status === 'started') this.#lookIn(Math.max(0, this.#lookAtMs - performance.now()))
      })
    }, delayMs)
  }

  async #look(): Promise<void> {
    this.#lookAtMs = Number.POSITIVE_INFINITY
    let waitMs = IDLE_LOOK_MS
    try {
      const { nextInMs } = await this.release()
      // A millisecond more: timers come early, and the store's clock counts whole ones.
      if (nextInMs !== null) waitMs = Math.min(WAITING_LOOK_MS, nextInMs === 0 ? 0 : nextInMs + 1)
    } catch (fault) {
      // A connection tells of itself, and nobody need know more; they wait in the store until it is back.
      if (!(fault instanceof HeddleError && fault.code === 'KV_UNAVAILABLE')) {
        this.#tell('ERROR', `Delayed events cannot be released: ${messageOf(fault)}`)
      }
    }
    this.#lookAtMs = Math.min(this.#lookAtMs, performance.now() + waitMs)
  }

  #tell(level: LogLevel, message: string, fields?: Record<string, unknown>): void {
    const nowMs = performance.now()
    if (nowMs - this.#toldMs < REMINDER_MS) return
    this.#toldMs = nowMs
    this.#options.log(level, message, fields)
  }
}
