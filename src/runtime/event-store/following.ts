// Follows an event until it has ended.

import type { Queryable } from '../../contracts/db.ts'
import type { FollowedEvent, FollowOptions, FollowState } from '../../contracts/event-bus.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { isInstance } from '../../core/errors/description.ts'
import { HttpError } from '../../core/http/http-error.ts'
import { AS_EVENT_STREAM, type EventStreamSource } from '../../core/streams/event-stream.ts'
import { readChunks } from './report-rows.ts'

// Saved before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

export interface FollowingParts {
  /** Asks the primary. */
  followed: (id: string, seen: string) => Promise<FollowState>
  /** Null without a database, where nothing is reported. */
  database: () => Queryable | null
}

/** Chunks of one read at most, and of the first one. */
const PAGE_CHUNKS = 100
const FIRST_CHUNKS = 4
/** Characters of one read, estimated from the one before: a follower that never reads keeps them. */
const PAGE_CHARACTERS = 1 << 18

/** At the end of the `id` of the last item of all. */
const END = '!'
/** A comment: whoever stands between sees that the connection is in use. */
const STILL_HERE = ':\n\n'

type Subscribers = FollowState['subscribers']

const isOver = ({ state }: Pick<FollowedEvent, 'state'>): boolean =>
  state === 'done' || state === 'dead' || state === 'cancelled'

export class Following implements AsyncIterable<FollowedEvent>, EventStreamSource {
  readonly #parts: FollowingParts
  readonly #id: string
  readonly #from: string
  readonly #signal: AbortSignal | undefined

  constructor(parts: FollowingParts, id: string, { from = '', signal }: FollowOptions) {
    this.#parts = parts
    this.#id = id
    this.#from = from
    this.#signal = signal
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<FollowedEvent, void, undefined> {
    for await (const item of this.#items()) if (item !== null) yield item
  }

  get [AS_EVENT_STREAM](): (() => AsyncIterable<string>) | null {
    return this.#from.endsWith(END) ? null : () => this.#frames()
  }

  async *#frames(): AsyncGenerator<string, void, undefined> {
    try {
      for await (const item of this.#items()) {
        if (item === null) yield STILL_HERE
        else {
          const { id, ...data } = item
          yield `id: ${id}\ndata: ${toJson(data)}\n\n`
        }
      }
    } catch (error) {
      if (isInstance(error, HeddleError) && error.code === 'EVENT_UNKNOWN')
        throw new HttpError(404, 'Nothing is known of the event')
      throw error
    }
  }

  /** Null: nothing has changed for some time. */
  async *#items(): AsyncGenerator<FollowedEvent | null, void, undefined> {
    const cursor = cursorIn(this.#from)
    const told = new Map<string, string>()
    for (let seen = ''; ; ) {
      const state = await this.#next(seen)
      if (state === null) return
      if (state.version === seen) yield null
      seen = state.version
      yield* this.#changes(state.subscribers, cursor, told)
      if (state.isStopping) return
      if (state.subscribers.length > 0 && state.subscribers.every(isOver)) return
    }
  }

  /** Null when nobody follows any more. */
  #next(seen: string): Promise<FollowState | null> {
    const signal = this.#signal
    if (signal?.aborted) return Promise.resolve(null)
    const next = this.#parts.followed(this.#id, seen)
    if (signal === undefined) return next
    return new Promise((resolve, reject) => {
      const stop = (): void => resolve(null)
      signal.addEventListener('abort', stop, { once: true })
      next.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
    })
  }

  async *#changes(
    subscribers: Subscribers,
    cursor: Map<string, number>,
    told: Map<string, string>,
  ): AsyncGenerator<FollowedEvent, void, undefined> {
    const areAllOver = subscribers.every(isOver)
    const idNow = (isLast: boolean): string => {
      const numbers = new URLSearchParams()
      for (const [name, n] of cursor) numbers.append(name, String(n))
      return `${numbers}${isLast ? END : ''}`
    }
    for (const [at, { lastN, ...each }] of subscribers.entries()) {
      const json = toJson(each)
      const run = each.run === undefined ? {} : { run: each.run }
      const isNew = told.get(each.subscriber) !== json
      told.set(each.subscriber, json)
      // How it ends comes behind its last chunk.
      if (isNew && !isOver(each)) yield { id: idNow(false), ...each }
      for await (const chunk of this.#chunks(each.subscriber, lastN, cursor))
        yield {
          id: idNow(false),
          subscriber: each.subscriber,
          state: 'running',
          attempt: each.attempt,
          ...run,
          ...chunk,
        }
      if (isNew && isOver(each)) yield { id: idNow(areAllOver && at === subscribers.length - 1), ...each }
    }
  }

  async *#chunks(
    subscriber: string,
    lastN: number,
    cursor: Map<string, number>,
  ): AsyncGenerator<{ chunk: unknown; missed?: number }, void, undefined> {
    const db = this.#parts.database()
    let limit = FIRST_CHUNKS
    for (let after = cursor.get(subscriber) ?? 0; after < lastN && db !== null; ) {
      const page = await readChunks(db, this.#id, subscriber, after, limit)
      for (const { n, chunk } of page) {
        // It may be of the next run, of which the next state tells.
        if (n > lastN) return
        const missed = n - after - 1
        after = n
        cursor.set(subscriber, n)
        yield { chunk: parseJson(chunk), ...(missed > 0 ? { missed } : {}) }
      }
      // The rest is not kept any more: the next chunk says how many were missed.
      if (page.length === 0) return
      const characters = page.reduce((sum, { chunk }) => sum + chunk.length, 0) / page.length
      limit = Math.max(1, Math.min(PAGE_CHUNKS, Math.floor(PAGE_CHARACTERS / characters)))
    }
  }
}

/** Numbers of the last chunks, by subscriber. Whatever is no `id` of an item begins anew. */
function cursorIn(from: string): Map<string, number> {
  const cursor = new Map<string, number>()
  for (const [name, text] of new URLSearchParams(from.endsWith(END) ? from.slice(0, -1) : from)) {
    const n = Number(text)
    if (Number.isSafeInteger(n) && n > 0) cursor.set(name, n)
  }
  return cursor
}
