// Writes outcomes of the entries of this process: acknowledged, given back, tried again, or a dead letter.
import { HeddleError } from '../../core/errors/catalogue.ts'
import { cutText } from '../../core/errors/description.ts'
import { encodeEntry } from '../../runtime/redis-streams/entry.ts'
import { attemptField, attemptsOf, streamOf } from '../../runtime/redis-streams/keys.ts'
import { retryWhile } from '../../runtime/redis-streams/publisher.ts'
import { isNoGroup, SCRIPTS } from '../../runtime/redis-streams/stream-commands.ts'
import { textOf } from '../../transport/frames/event-frame.ts'
import type { Delivery, FailedDelivery, Share } from '../events/delivery.ts'
import type { StreamDeadLetters } from './dead-letters.ts'
import type { Settlements, StreamGroup, StreamProcess, TakenEntry } from './stream-group.ts'

/** Longest wait of an acknowledgement for others and for the next read, so that they are sent together; milliseconds. */
const GATHER_MS = 2
/** Pause before a failed acknowledgement is sent again, milliseconds. */
const RETRY_MS = 250
/** Pause before a failed dead letter is sent again, milliseconds. */
const DEAD_LETTER_RETRY_MS = 500
/** Idle time of released entries: longer than any replica waits before it claims. */
const RELEASED_IDLE_MS = 86_400_000
/** Time for which failed attempts are kept after the last one of a stream, milliseconds. */
const ATTEMPTS_KEEP_MS = 7 * 86_400_000
const ERROR_MAX_LENGTH = 1000

interface StreamSettlementsOptions extends StreamProcess {
  deadLetters: StreamDeadLetters
  /** Called when the store has confirmed acknowledgements of the group. */
  onConfirmed: (group: StreamGroup) => void
}

export class StreamSettlements implements Settlements {
  readonly #options: StreamSettlementsOptions
  /** Groups with unsent acknowledgements. */
  readonly #due = new Set<StreamGroup>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  /** Acknowledgements and dead letters the store has not confirmed. */
  open = 0

  constructor(options: StreamSettlementsOptions) {
    this.#options = options
  }

  // ── acknowledged ──────────────────────────────────────────────────────────

  acknowledge(entry: TakenEntry): void {
    this.open++
    entry.group.acknowledged.push(entry)
    this.#due.add(entry.group)
    this.#timer ??= setTimeout(this.flush, GATHER_MS)
  }

  /** Sends the gathered acknowledgements together with another command. */
  readonly flush = (): void => {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const group of this.#due) void this.#send(group, group.acknowledged.splice(0))
    this.#due.clear()
  }

  async #send(group: StreamGroup, entries: TakenEntry[]): Promise<void> {
    const { redis } = this.#options
    const ids = entries.map(({ id }) => id)
    await retryWhile(
      () => !this.#isClosed,
      () => redis.command('xack', [group.stream, group.name, ...ids]),
      // A group that is gone has nothing pending.
      { pauseMs: RETRY_MS, isFinal: isNoGroup },
    )
    this.open -= entries.length
    this.#confirmed(group, entries)
  }

  #confirmed(group: StreamGroup, entries: readonly TakenEntry[]): void {
    for (const entry of entries) {
      group.remove(entry)
      if (entry.hasAttempts) this.#forgetAttempts(entry)
    }
    this.#options.onConfirmed(group)
  }

  // ── given back ────────────────────────────────────────────────────────────

  release(entry: TakenEntry): void {
    const { group, id } = entry
    if (!group.remove(entry) || !this.#options.isOurs()) return
    this.giveBack(group, [id]).catch(() => {
      // Otherwise it is claimed after its idle time.
    })
  }

  /**
   * Gives pending entries back, so that the next replica that claims gets them at once, whatever its idle time. Entries that now belong
   * to another process are left alone.
   */
  async giveBack({ stream, name }: StreamGroup, ids: readonly string[]): Promise<void> {
    const args = [name, this.#options.consumer, RELEASED_IDLE_MS, ...ids]
    await this.#options.redis.run(SCRIPTS.renewEntries, [stream], args).catch((fault: unknown) => {
      if (!isNoGroup(fault)) throw fault
    })
  }

  // ── tried again ───────────────────────────────────────────────────────────

  noteAttempt(entry: TakenEntry, { attempt, error }: Delivery, dueMs: number): void {
    const { redis } = this.#options
    const key = attemptsOf(entry.group.event)
    const told = JSON.stringify([attempt, dueMs, cutText(error, ERROR_MAX_LENGTH)])
    entry.hasAttempts = true
    // If this fails, another process begins with the first attempt again.
    redis.command('hset', [key, attemptField(entry.group.name, entry.id), told]).catch(() => {})
    redis.command('pexpire', [key, ATTEMPTS_KEEP_MS]).catch(() => {})
  }

  #forgetAttempts({ group, id }: TakenEntry): void {
    this.#options.redis.command('hdel', [attemptsOf(group.event), attemptField(group.name, id)]).catch(() => {})
  }

  /** Attempts recorded by earlier processes, in the order of the entries; null for an entry without any. */
  async attemptsOf(group: StreamGroup, ids: readonly string[]): Promise<(Omit<Share, 'group'> | null)[]> {
    if (ids.length === 0) return []
    const fields = ids.map((id) => attemptField(group.name, id))
    const told = await this.#options.redis
      .command<(string | null)[]>('hmget', [attemptsOf(group.event), ...fields])
      // The key holds another type: foreign data.
      .catch((fault: unknown) => {
        if (fault instanceof HeddleError && fault.code === 'KV_WRONG_TYPE') return ids.map(() => null)
        throw fault
      })
    return told.map(shareIn)
  }

  // ── dead letters ──────────────────────────────────────────────────────────

  storeDeadLetter(entry: TakenEntry, deadLetter: FailedDelivery): Promise<void> {
    const { event, subscriber, error, attempts, blackBox } = deadLetter
    const [, envelope] = encodeEntry({ ...event, trace: event.producer }, this.#options.replica, null)
    return this.#store(entry, {
      envelope: envelope!,
      payload: textOf(event),
      event: event.event,
      group: entry.group.name,
      subscriber,
      error,
      attempts,
      blackBox,
    })
  }

  /** Stores an entry that is no event as a dead letter, with its fields unchanged. */
  async storeMalformed(entry: TakenEntry, fields: readonly string[], why: string): Promise<void> {
    const { group, id } = entry
    this.#options.log('WARNING', `An entry of ${group.stream} is not an event and becomes a dead letter: ${why}`, {
      entry: id,
      group: group.name,
    })
    const payload: Record<string, string> = {}
    for (let n = 0; n + 1 < fields.length; n += 2) payload[fields[n]!] = fields[n + 1]!
    await this.#store(entry, {
      envelope: JSON.stringify({ id, payload_keys: Object.keys(payload), request_id: null }),
      payload: JSON.stringify(payload),
      event: group.stream.replace(streamOf(''), ''),
      group: group.name,
      subscriber: group.subscriber,
      error: `It is no event: ${why}`,
      attempts: 0,
      blackBox: null,
    })
    // The entry of a shared group is acknowledged with the dead letter, and no delivery ends here.
    if (group.isBroadcast) this.acknowledge(entry)
  }

  /** Tries until the store has the dead letter. If this process ends before, the entry is still pending and is delivered again. */
  async #store(entry: TakenEntry, deadLetter: Parameters<StreamDeadLetters['add']>[0]): Promise<void> {
    const { group, id } = entry
    const place = { stream: group.stream, group: group.name, entryId: group.isBroadcast ? '' : id }
    this.open++
    await retryWhile(
      () => !this.#isClosed,
      () => this.#options.deadLetters.add(deadLetter, place),
      { pauseMs: DEAD_LETTER_RETRY_MS },
    )
    this.open--
    if (!group.isBroadcast) this.#confirmed(group, [entry])
  }

  /** Stops repeating commands. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }
}

/** Null for an id that no process of this service has written. */
function shareIn(told: string | null): Omit<Share, 'group'> | null {
  if (told === null) return null
  try {
    const [attempt, dueMs, error] = JSON.parse(told) as unknown[]
    if (!Number.isSafeInteger(attempt) || !Number.isFinite(dueMs) || typeof error !== 'string') return null
    return { attempt: attempt as number, deaths: 0, dueMs: dueMs as number, error }
  } catch {
    return null
  }
}
