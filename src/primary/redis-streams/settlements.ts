// Entries in hand, and their outcomes in the store: acknowledged, given back, tried again, or a dead letter.
import { setTimeout as sleep } from 'node:timers/promises'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { cutText } from '../../core/errors/description.ts'
import { encodeEntry } from '../../runtime/redis-streams/entry.ts'
import { attemptField, attemptsOf, RELEASED, streamOf } from '../../runtime/redis-streams/keys.ts'
import { ignoreNoGroup, SCRIPTS } from '../../runtime/redis-streams/stream-commands.ts'
import { textOf } from '../../transport/frames/event-frame.ts'
import type { Delivery, EventSource, FailedDelivery, Share } from '../events/consumer.ts'
import type { StreamDeadLetters } from './dead-letters.ts'
import type { HeldEntry, StreamGroup, StreamProcess } from './stream-group.ts'

/** Longest wait of an acknowledgement for others and for the next read, so that they are sent together; milliseconds. */
const GATHER_MS = 2
/** Pause before a failed acknowledgement is sent again, milliseconds. */
const RETRY_MS = 250
/** Pause before a failed dead letter is sent again, milliseconds. */
const DEAD_LETTER_RETRY_MS = 500
/** Time for which failed attempts are kept after the last one of a stream, milliseconds. */
const ATTEMPTS_KEEP_MS = 7 * 86_400_000
const ERROR_MAX_LENGTH = 1000

/** An entry in hand, as the hub settles its deliveries. */
export class TakenEntry implements EventSource, HeldEntry {
  readonly isBroker = true
  readonly group: StreamGroup
  readonly id: string
  readonly chars: number
  readonly onGone: (() => void) | null
  /** True when the store has attempts of it: failed ones, or the start of an event with expiry. */
  hasAttempts: boolean
  /** True when its event expires unless a thread starts it in time. */
  hasExpiry = false
  readonly #settlements: StreamSettlements
  /** Deliveries not ended: for a broadcast, one for each thread. */
  #open = 0
  /** What its ended deliveries come to. A dead letter of a shared group acknowledges it. */
  #outcome: 'handled' | 'dead letter' | 'given back' = 'handled'

  constructor(
    settlements: StreamSettlements,
    place: Pick<TakenEntry, 'group' | 'id' | 'chars' | 'onGone' | 'hasAttempts'>,
  ) {
    this.#settlements = settlements
    this.group = place.group
    this.id = place.id
    this.chars = place.chars
    this.onGone = place.onGone
    this.hasAttempts = place.hasAttempts
  }

  accepted(): void {
    this.#open++
  }

  begun(delivery: Delivery): void {
    if (!delivery.isBegun && this.hasExpiry && !this.hasAttempts) this.#settlements.noteAttempt(this, delivery, 0)
  }

  unbegun(delivery: Delivery): void {
    if (delivery.isBegun || !this.hasAttempts) return
    this.hasAttempts = false
    this.#settlements.forgetAttempts(this)
  }

  retrying(delivery: Delivery, dueMs: number): boolean {
    if (!this.group.isBroadcast) this.#settlements.noteAttempt(this, delivery, dueMs)
    return false
  }

  storeDeadLetter(_: Delivery, deadLetter: FailedDelivery): Promise<void> {
    if (!this.group.isBroadcast) this.#outcome = 'dead letter'
    return this.#settlements.storeDeadLetter(this, deadLetter)
  }

  ended(_: Delivery, isDone: boolean): void {
    // Nobody else gets the entry of a broadcast: each process has its own group.
    if (!isDone && !this.group.isBroadcast) this.#outcome = 'given back'
    if (--this.#open > 0) return
    if (this.#outcome === 'given back') this.#settlements.release(this)
    else if (this.#outcome === 'handled') this.#settlements.acknowledge(this)
  }
}

interface StreamSettlementsOptions extends StreamProcess {
  deadLetters: StreamDeadLetters
  /** Called when the store has confirmed acknowledgements of the group. */
  onConfirmed: (group: StreamGroup) => void
}

export class StreamSettlements {
  readonly #options: StreamSettlementsOptions
  /** Entries with an unsent acknowledgement. */
  readonly #acknowledged = new Map<StreamGroup, TakenEntry[]>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  /** Acknowledgements and dead letters the store has not confirmed. */
  open = 0

  constructor(options: StreamSettlementsOptions) {
    this.#options = options
  }

  // ── acknowledged ──────────────────────────────────────────────────────────

  /** Called when it was handled, or is to be dropped. */
  acknowledge(entry: TakenEntry): void {
    this.open++
    const gathered = this.#acknowledged.get(entry.group)
    if (gathered === undefined) this.#acknowledged.set(entry.group, [entry])
    else gathered.push(entry)
    this.#timer ??= setTimeout(this.flush, GATHER_MS)
  }

  /** Sends the gathered acknowledgements together with another command. */
  readonly flush = (): void => {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const [group, entries] of this.#acknowledged) void this.#send(group, entries)
    this.#acknowledged.clear()
  }

  async #send(group: StreamGroup, entries: TakenEntry[]): Promise<void> {
    const { redis } = this.#options
    const ids = entries.map(({ id }) => id)
    // A group that is gone has nothing pending.
    await this.#untilDone(
      () => redis.command('xack', [group.stream, group.name, ...ids]).catch(ignoreNoGroup),
      RETRY_MS,
    )
    this.open -= entries.length
    this.#confirmed(group, entries)
  }

  #confirmed(group: StreamGroup, entries: readonly TakenEntry[]): void {
    for (const entry of entries) {
      group.remove(entry)
      if (entry.hasAttempts) this.forgetAttempts(entry)
    }
    this.#options.onConfirmed(group)
  }

  // ── given back ────────────────────────────────────────────────────────────

  /** Called when no subscriber here takes it: other processes may. */
  release(entry: TakenEntry): void {
    const { group, id } = entry
    if (!group.remove(entry) || !this.#options.isOurs()) return
    this.giveBack(group, [id]).catch(() => {
      // Otherwise this process claims it when the connection is back, or another one when this process is gone.
    })
  }

  /** Gives pending entries back, so that the next replica that looks claims them. Entries that now belong to another process are left alone. */
  async giveBack({ stream, name }: StreamGroup, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const args = [name, this.#options.consumer, RELEASED, ...ids]
    await this.#options.redis.run(SCRIPTS.releaseEntries, [stream], args).catch(ignoreNoGroup)
  }

  // ── tried again ───────────────────────────────────────────────────────────

  /** Called when it has begun, or waits for its next attempt. If this process ends, another one makes that attempt. */
  noteAttempt(entry: TakenEntry, { attempt, error }: Delivery, dueMs: number): void {
    const { redis } = this.#options
    const key = attemptsOf(entry.group.event)
    const told = JSON.stringify([attempt, dueMs, cutText(error, ERROR_MAX_LENGTH)])
    entry.hasAttempts = true
    // If this fails, another process begins with the first attempt again.
    redis.command('hset', [key, attemptField(entry.group.name, entry.id), told]).catch(() => {})
    redis.command('pexpire', [key, ATTEMPTS_KEEP_MS]).catch(() => {})
  }

  /** It has ended, or has not begun after all. */
  forgetAttempts({ group, id }: TakenEntry): void {
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

  /** Resolves when the store has the dead letter. The entry of a shared group is acknowledged with it. */
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
    await this.#untilDone(() => this.#options.deadLetters.add(deadLetter, place), DEAD_LETTER_RETRY_MS)
    this.open--
    if (!group.isBroadcast) this.#confirmed(group, [entry])
  }

  /** Repeats a command until the store has taken it. */
  async #untilDone(attempt: () => Promise<unknown>, pauseMs: number): Promise<void> {
    while (!this.#isClosed) {
      try {
        await attempt()
        return
      } catch {
        // The connection logs its loss.
        await sleep(pauseMs)
      }
    }
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
