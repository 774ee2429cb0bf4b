import type { LogLevel } from '../../contracts/logger.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { Reminder, RepeatingTask } from '../../core/schedule/repeating-task.ts'
import { DELAYED } from '../../runtime/streams/keys.ts'
import { LAST_OF_KEY_MS } from '../../runtime/streams/publisher.ts'
import { SCRIPTS } from '../../runtime/streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'

/** Events that one step moves at most: it holds up the server. */
const BATCH = 100
/** How often the store is asked while events wait, milliseconds: other replicas may have added earlier ones. */
const WAITING_LOOK_MS = 250
/** How often the store is asked while none waits, milliseconds. */
const IDLE_LOOK_MS = 1000
/** How long an event is put off that could not be written into its stream, milliseconds. */
const POSTPONE_MS = 5000
/** Between two log lines about one trouble, milliseconds. */
const REMINDER_MS = 60_000

export interface Release {
  released: number
  /** When the next event is due; null when none waits. */
  nextInMs: number | null
}

interface Options {
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
  /** Cuts the streams to about so many entries, read or not. */
  maxLen?: number
}

/**
 * Moves delayed events into their streams when they are due. Every replica does it, so that an event survives the replica that has
 * published it; the store gives each event to one of them.
 */
export class DelayedEvents {
  readonly #redis: RedisClient
  readonly #options: Options
  readonly #task = new RepeatingTask(() => this.#look())
  readonly #reminder = new Reminder(REMINDER_MS)

  constructor(redis: RedisClient, options: Options) {
    this.#redis = redis
    this.#options = options
  }

  start(): void {
    this.#task.start(0)
  }

  /** Resolves when a step that is under way has ended. */
  stop(): Promise<void> {
    return this.#task.stop()
  }

  /** This process has delayed an event by so long: it is released in time, even if none was waiting before. */
  dueIn(delayMs: number): void {
    this.#task.runWithin(delayMs)
  }

  /** Moves one batch of due events. */
  async release(): Promise<Release> {
    const args = [BATCH, this.#options.maxLen ?? '', LAST_OF_KEY_MS, POSTPONE_MS]
    const reply = await this.#redis.run<[number, number, number, string, number]>(SCRIPTS.releaseDue, [DELAYED], args)
    const [released, nextInMs, failed, stream, strange] = reply
    if (failed > 0) {
      this.#logFault(
        `Delayed events wait longer: ${stream} or a key of its order holds something else than this service keeps there; delete it`,
        { events: failed },
      )
    }
    if (strange > 0) {
      const message = `${DELAYED} holds what is no delayed event; it stays there and is not looked at again`
      this.#options.log('WARNING', message, { members: strange })
    }
    return { released, nextInMs: nextInMs < 0 ? null : nextInMs }
  }

  /** @returns the milliseconds until the next step */
  async #look(): Promise<number> {
    try {
      const { nextInMs } = await this.release()
      if (nextInMs === null) return IDLE_LOOK_MS
      // A millisecond more: timers come early, and the store's clock counts whole ones.
      return Math.min(WAITING_LOOK_MS, nextInMs === 0 ? 0 : nextInMs + 1)
    } catch (fault) {
      // The connection logs that it is lost, and the events wait in the store until it is back.
      if (!(fault instanceof HeddleError && fault.code === 'KV_UNAVAILABLE')) {
        this.#logFault(`Delayed events cannot be released: ${messageOf(fault)}`)
      }
      return IDLE_LOOK_MS
    }
  }

  #logFault(message: string, fields?: Record<string, unknown>): void {
    if (this.#reminder.isDue()) this.#options.log('ERROR', message, fields)
  }
}
