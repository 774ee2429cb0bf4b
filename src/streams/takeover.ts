import type { BlackBox } from '../contracts/registry.ts'
import type { Adoption } from '../events/hub.ts'
import type { RedisClient } from '../redis/client.ts'
import { decodeEntry, type StreamEvent } from './entry.ts'
import type { KeyGate } from './key-gate.ts'
import { eventOf } from './keys.ts'
import type { Entry } from './stream-commands.ts'

/** Entries that are taken over at a time. */
const TAKEOVER_BATCH = 200
/** An entry that was given out so often without an end may be what ended those processes: it is tried alone. */
export const SUSPECT_AFTER_TIMES = 3
/** An entry that was given out so often without an end is a dead letter. */
export const POISON_AFTER_TIMES = 6

export interface TakeoverOptions {
  redis: RedisClient
  /** What this process has taken over is in this consumer's hand. */
  hubConsumer: string
  gate: KeyGate
  /** False when nobody here subscribes as that group. */
  adopt: (stream: string, entry: StreamEvent, adoption: Pick<Adoption, 'group' | 'deaths' | 'blackBox'>) => boolean
  /** An entry that is no event. */
  onForeign: (stream: string, group: string, entryId: string, why: string) => void
  /** Nobody here takes it: others may. */
  giveBack: (stream: string, group: string, entryId: string) => void
}

type Pending = [id: string, consumer: string, idleMs: number, times: number]

/** Takes entries out of the hand of a thread that has died, or of a replica that does not answer, and gives them to the hub. */
export class Takeover {
  readonly #options: TakeoverOptions

  constructor(options: TakeoverOptions) {
    this.#options = options
  }

  /** All that a consumer of this process has left behind. @param blackBox of the thread, when it has died of something */
  async ofConsumer(stream: string, group: string, consumer: string, blackBox: BlackBox | null): Promise<number> {
    let taken = 0
    for (;;) {
      const rows = await this.#pending(stream, group, ['-', '+', TAKEOVER_BATCH, consumer])
      if (rows.length === 0) return taken
      const count = await this.#claim(stream, group, rows, 0, blackBox)
      taken += count
      if (rows.length < TAKEOVER_BATCH) return taken
    }
  }

  /** What nobody has touched for so long, at most one batch. */
  async ofIdle(stream: string, group: string, idleMs: number): Promise<number> {
    const rows = await this.#pending(stream, group, ['IDLE', idleMs, '-', '+', TAKEOVER_BATCH])
    const theirs = rows.filter(([, consumer]) => consumer !== this.#options.hubConsumer)
    return theirs.length === 0 ? 0 : this.#claim(stream, group, theirs, idleMs, null)
  }

  async #pending(stream: string, group: string, args: (string | number)[]): Promise<Pending[]> {
    return this.#options.redis.command<Pending[]>('xpending', [stream, group, ...args])
  }

  async #claim(
    stream: string,
    group: string,
    rows: readonly Pending[],
    minIdleMs: number,
    blackBox: BlackBox | null,
  ): Promise<number> {
    const { redis, hubConsumer } = this.#options
    const ids = rows.map(([id]) => id)
    const entries = await redis.command<(Entry | null)[]>('xclaim', [stream, group, hubConsumer, minIdleMs, ...ids])
    const times = new Map(rows.map(([id, , , count]) => [id, count]))
    let count = 0
    for (const entry of entries) {
      // Somebody else was faster; or it was cut from the stream, and the server has dropped it.
      if (entry === null || entry[1] === null) continue
      count++
      this.#give(stream, group, entry[0], entry[1], times.get(entry[0]) ?? 1, blackBox)
    }
    return count
  }

  #give(
    stream: string,
    group: string,
    entryId: string,
    fields: string[],
    times: number,
    blackBox: BlackBox | null,
  ): void {
    const { adopt, onForeign, giveBack, gate } = this.#options
    const entry = decodeEntry(eventOf(stream) ?? stream, entryId, fields)
    if (typeof entry === 'string') return onForeign(stream, group, entryId, entry)
    const deaths = blackBox !== null ? 1 : deathsOf(times)
    const known = blackBox ?? (deaths > 0 ? processDeath(times) : null)
    const give = (): void => {
      if (!adopt(stream, entry, { group, deaths, blackBox: known })) giveBack(stream, group, entryId)
    }
    if (entry.after === null) give()
    else gate.wait(stream, group, entry.after, give)
  }
}

/** The death of a whole process leaves no black box: how often an entry was given out is all that is known. */
function deathsOf(times: number): number {
  if (times >= POISON_AFTER_TIMES) return Number.POSITIVE_INFINITY
  return times >= SUSPECT_AFTER_TIMES ? 1 : 0
}

function processDeath(times: number): BlackBox {
  return {
    at: new Date().toISOString(),
    lane: -1,
    reason: 'process',
    message: `The event was given out ${times} times, and each time its process ended or stood still before it was done`,
    guilty: null,
    stack: [],
    stood_still_ms: 0,
    lived_ms: 0,
    cpu_ms: null,
    cpu_ms_while_still: null,
    heap_bytes: 0,
    external_bytes: 0,
    in_flight: [],
    in_flight_count: 0,
    steps: [],
  }
}
