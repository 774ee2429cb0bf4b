// Records of events that come by streams, each once.
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'

/** So many places an id may stand in; it takes the one that was taken longest ago. */
const WAYS = 4
const BUCKETS = 1024

/**
 * The ids that came lately: the last thousand for certain but for a few, and some older ones. Of each only a hash of 64 bits is kept, in
 * memory that is made once: a Set to which ids come and from which they go keeps its old tables, with all ids that were ever in them, until
 * the next full collection.
 */
export class RecentIds {
  readonly #hashes = new Int32Array(BUCKETS * WAYS * 2)
  /** Per bucket, the place that is taken next. */
  readonly #next = new Uint8Array(BUCKETS)

  /** @returns false when it has come before */
  add(id: string): boolean {
    let first = 0x811c9dc5 | 0
    let second = id.length
    for (let n = 0; n < id.length; n++) {
      const code = id.charCodeAt(n)
      first = Math.imul(first ^ code, 0x01000193)
      second = (Math.imul(second, 31) + code) | 0
    }
    const bucket = (first ^ (first >>> 16)) & (BUCKETS - 1)
    const hashes = this.#hashes
    const from = bucket * WAYS * 2
    for (let at = from; at < from + WAYS * 2; at += 2)
      if (hashes[at] === first && hashes[at + 1] === second) return false
    const way = this.#next[bucket]!
    this.#next[bucket] = (way + 1) % WAYS
    hashes[from + way * 2] = first
    hashes[from + way * 2 + 1] = second
    return true
  }
}

/** Records the events that do not pass the hub of this process: those that it publishes, and those that it receives. */
export class StreamRecords {
  readonly #hub: Hub
  readonly #received = new RecentIds()

  constructor(hub: Hub) {
    this.#hub = hub
  }

  published(frame: EventFrame, origin: SubscriberThread | null): void {
    this.#hub.record(frame, origin)
  }

  /** An event that several groups here receive is recorded once. */
  received(frame: EventFrame): void {
    if (this.#received.add(frame.id)) this.#hub.record(frame, null)
  }
}
