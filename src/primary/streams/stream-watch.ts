import { setTimeout as sleep } from 'node:timers/promises'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { lastEntryId } from '../../runtime/streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { StreamReader } from './stream-reader.ts'

/** One blocking read lasts so long at most, milliseconds. */
export const WATCH_MS = 2000
/** Before a read that has failed is repeated, milliseconds. */
const RETRY_MS = 200
/** How often it is asked where the streams end, milliseconds: one that was deleted may begin anew with smaller ids, which no read waits for. */
const ENDS_MS = 10_000
/** Between two attempts to end a read early, milliseconds. */
const INTERRUPT_MS = 2

/** Waits for new entries: one blocking read of all streams that have been read to their end. */
export class StreamWatch {
  readonly #reader: () => StreamReader
  /** A connection of its own, which blocks. */
  readonly #blocking: RedisClient
  readonly #commands: RedisClient
  /** The server's id of the blocking connection; null when it is not known. */
  #clientId: number | null = null
  #isRunning = false
  #isBlocked = false
  #isChanged = false
  #isInterrupting = false
  #askedMs = steadyMs()
  #wakeLoop: (() => void) | null = null
  #loop: Promise<void> = Promise.resolve()

  constructor(blocking: RedisClient, commands: RedisClient, reader: () => StreamReader) {
    this.#blocking = blocking
    this.#commands = commands
    this.#reader = reader
  }

  start(): void {
    this.#isRunning = true
    this.#loop = this.#run()
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    this.changed()
    await this.#loop
  }

  /** Other streams are to be watched: the read that is under way ends. */
  changed(): void {
    this.#isChanged = true
    this.#wakeLoop?.()
    if (this.#isBlocked && !this.#isInterrupting) void this.#interrupt()
  }

  async #interrupt(): Promise<void> {
    this.#isInterrupting = true
    // One interruption for all changes of this turn of the loop.
    await new Promise((resolve) => setImmediate(resolve))
    // When the read has not reached the server yet, there is nothing to end, and it is tried again.
    while (this.#isBlocked && this.#isChanged && this.#clientId !== null) {
      const ended = await this.#commands.command<number>('client', ['UNBLOCK', this.#clientId]).catch(() => 0)
      if (ended !== 1) await sleep(INTERRUPT_MS)
    }
    this.#isInterrupting = false
  }

  async #run(): Promise<void> {
    const stopHearing = this.#blocking.onUp(() => {
      this.#clientId = null
    })
    while (this.#isRunning) {
      try {
        this.#clientId ??= await this.#blocking.command<number>('client', ['ID'])
        this.#isChanged = false
        const toWatch = this.#reader().toWatch()
        if (toWatch.size === 0) {
          await this.#untilChanged()
          continue
        }
        this.#isBlocked = true
        const reply = await this.#blocking.command<[string, [string, unknown][]][] | null>('xread', [
          ...['COUNT', 1, 'BLOCK', WATCH_MS, 'STREAMS'],
          ...toWatch.keys(),
          ...toWatch.values(),
        ])
        this.#isBlocked = false
        for (const [stream] of reply ?? []) this.#reader().wake(stream)
        if (steadyMs() - this.#askedMs > ENDS_MS) await this.#askForEnds(toWatch.keys())
      } catch {
        // The connection logs what is wrong, and when it is back.
        this.#isBlocked = false
        this.#clientId = null
        await sleep(RETRY_MS)
        if (this.#blocking.isReady) this.#reader().wakeAll()
      }
    }
    stopHearing()
  }

  async #askForEnds(streams: Iterable<string>): Promise<void> {
    this.#askedMs = steadyMs()
    const ask = async (stream: string): Promise<void> => {
      const lastId = await lastEntryId(this.#commands, stream)
      // Before anything was added to it nothing waits.
      if (lastId !== '0-0') this.#reader().endsAt(stream, lastId)
    }
    await Promise.all([...streams].map(ask))
  }

  async #untilChanged(): Promise<void> {
    if (this.#isChanged || !this.#isRunning) return
    await new Promise<void>((resolve) => {
      this.#wakeLoop = resolve
    })
    this.#wakeLoop = null
  }
}
