// The order of keys over processes: what waits for the one before it, and what waits in the store behind a dead letter (`onDead: 'park'`).
import { RepeatingTask } from '../../core/schedule/repeating-task.ts'
import {
  asideOf,
  DEAD_STREAM,
  placeIn,
  placeOf,
  placesOf,
  REPLAYS,
  REPLAYS_MAX,
  streamOf,
} from '../../runtime/streams/keys.ts'
import { SCRIPTS } from '../../runtime/streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import type { StreamGroup, TakenEntry } from './stream-group.ts'

/** How often it is looked whether what held up a place has gone without a word, milliseconds: a letter that somebody deleted in the store. */
const LOOK_MS = 5000
const PAGE = 100

/** What is known of an entry, or of a letter, that holds up its key no longer. */
interface Freed {
  event: string
  group: string
  /** Null: it has held up none. */
  key: string | null
  /** `L` and the id of the letter, or `E` and that of the entry. */
  holder: string
  /** The entry: it is acknowledged. */
  entry?: string
  /** The letter: it is deleted. */
  letter?: string
  /** The letter whose replay the entry was. */
  replayed?: string | null
}

/** Lets the next event of a place go. The call can be repeated. @returns true when the entry, or the letter, was still there */
export async function freePlace(redis: RedisClient, freed: Freed): Promise<boolean> {
  const { event, group, key, holder, entry = '', letter = '', replayed } = freed
  const place = key === null ? '' : placeOf(group, key)
  const keys = [streamOf(event), placesOf(event), asideOf(event, place), DEAD_STREAM, REPLAYS]
  const args = [group, place, holder, entry, letter, replayed ?? '', REPLAYS_MAX]
  return (await redis.run<number>(SCRIPTS.freePlace, keys, args)) === 1
}

interface StreamPlacesOptions {
  redis: RedisClient
  /** Events that this process reads. */
  events: () => Iterable<string>
}

export class StreamPlaces {
  readonly #options: StreamPlacesOptions
  readonly #task = new RepeatingTask(async () => {
    await this.look()
    return LOOK_MS
  })

  constructor(options: StreamPlacesOptions) {
    this.#options = options
  }

  start(): void {
    this.#task.start(LOOK_MS)
  }

  /** Resolves when a look that is under way has ended. */
  stop(): Promise<void> {
    return this.#task.stop()
  }

  /** @returns false when it was set aside, behind a dead letter of its key: the store has acknowledged it */
  async admit(entry: TakenEntry, key: string): Promise<boolean> {
    const { group, id } = entry
    const place = placeOf(group.name, key)
    const keys = [group.stream, placesOf(group.event), asideOf(group.event, place)]
    const answer = await this.#options.redis.run<number>(SCRIPTS.admit, keys, [group.name, place, id])
    entry.isFirst = answer === 2
    return answer > 0
  }

  /** Lets what waits go on where the letter, or the entry that goes first, has gone without a word. */
  async look(): Promise<void> {
    for (const event of new Set(this.#options.events())) {
      // The connection logs that it is lost, and what somebody else has put there holds up nothing.
      await this.#lookAt(event).catch(() => {})
    }
  }

  async #lookAt(event: string): Promise<void> {
    const { redis } = this.#options
    let cursor = '0'
    do {
      const args = [placesOf(event), cursor, 'COUNT', PAGE]
      const [next, list] = await redis.command<[string, string[]]>('hscan', args)
      for (let at = 0; at + 1 < list.length; at += 2) {
        const place = placeIn(list[at])
        if (place !== null) await freePlace(redis, { event, ...place, holder: list[at + 1]! })
      }
      cursor = next
    } while (cursor !== '0' && !this.#task.isStopped)
  }
}

/** How long until the store is asked again whether another process has finished an event, milliseconds: at first, and at most. */
const CHECK_MS = 5
const CHECK_MAX_MS = 200

/** Says of each entry of a stream whether a group has finished it. */
type Finished = (stream: string, group: string, entryIds: readonly string[]) => Promise<boolean[]>

interface Waiting {
  readonly entry: TakenEntry
  readonly run: () => void
}

/**
 * Keeps events with one ordering key in their order, whichever process handles them: each waits until the one before it is acknowledged, or a
 * dead letter. When another process finishes that one, the store is asked for it.
 */
export class KeyGate {
  readonly #finished: Finished
  /** By group and the entry that is waited for: mostly one. */
  readonly #waiting = new Map<StreamGroup, Map<string, Waiting[]>>()
  #timer: NodeJS.Timeout | undefined
  #pauseMs = CHECK_MS
  #isClosed = false

  constructor(finished: Finished) {
    this.#finished = finished
  }

  /** True while entries of the group wait. */
  isWaitedFor(group: StreamGroup): boolean {
    return this.#waiting.has(group)
  }

  /** Runs `run` when the group has finished the entry `after`. */
  wait(entry: TakenEntry, after: string, run: () => void): void {
    const { group } = entry
    const waiting = this.#waiting.get(group) ?? new Map<string, Waiting[]>()
    this.#waiting.set(group, waiting)
    waiting.set(after, [...(waiting.get(after) ?? []), { entry, run }])
    this.#pauseMs = CHECK_MS
    this.#checkSoon()
  }

  /** The group has finished an entry: what waits for it goes on. */
  finished(group: StreamGroup, after: string): void {
    const waiting = this.#waiting.get(group)
    const free = waiting?.get(after)
    if (free === undefined) return
    waiting!.delete(after)
    if (waiting!.size === 0) this.#waiting.delete(group)
    this.#pauseMs = CHECK_MS
    for (const { run } of free) run()
  }

  /** Nothing that waits is begun any more. @returns the entries that have waited */
  close(): TakenEntry[] {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const left = [...this.#waiting.values()].flatMap((waiting) => [...waiting.values()].flat())
    this.#waiting.clear()
    return left.map(({ entry }) => entry)
  }

  #checkSoon(): void {
    if (this.#isClosed) return
    this.#timer ??= setTimeout(() => void this.#check(), this.#pauseMs)
  }

  async #check(): Promise<void> {
    this.#pauseMs = Math.min(CHECK_MAX_MS, this.#pauseMs * 2)
    const all = [...this.#waiting].map(([group, waiting]) => ({ group, ids: [...waiting.keys()] }))
    await Promise.all(
      all.map(async ({ group, ids }) => {
        try {
          const answers = await this.#finished(group.stream, group.name, ids)
          for (const [n, id] of ids.entries()) if (answers[n]) this.finished(group, id)
        } catch {
          // The store does not answer: it is asked again.
        }
      }),
    )
    this.#timer = undefined
    if (this.#waiting.size > 0) this.#checkSoon()
  }
}
