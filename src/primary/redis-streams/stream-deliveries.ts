// Makes events of the entries of this process, and gives them to the hub.
import { RecentIds } from '../../core/collections/recent-ids.ts'
import { decodeEntry, type StreamEvent } from '../../runtime/redis-streams/entry.ts'
import { type Entry, reply } from '../../runtime/redis-streams/stream-commands.ts'
import { bytesOf } from '../../transport/frames/event-frame.ts'
import { hubEventOf, type Requester, type Share } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import { type StreamSettlements, TakenEntry } from './settlements.ts'
import type { StreamCancels } from './stream-cancels.ts'
import type { StreamGroup, StreamProcess } from './stream-group.ts'

/** State of an entry that another consumer had before. */
export interface ClaimedShare extends Omit<Share, 'group' | 'instance'> {
  /** True when that consumer has noted the start of an attempt. */
  isNoted?: boolean
  /** Called when the entry is no longer in hand. */
  onGone?: () => void
}

interface StreamDeliveriesOptions extends StreamProcess {
  hub: Hub
  cancels: StreamCancels
  settlements: StreamSettlements
}

export class StreamDeliveries {
  readonly #options: StreamDeliveriesOptions
  /** Events published by other processes: an event for several groups here is recorded once. */
  readonly #received = new RecentIds()

  constructor(options: StreamDeliveriesOptions) {
    this.#options = options
  }

  /** @param fields null: cut from the stream on its way here. @param claimed null: no consumer had it before */
  take(group: StreamGroup, [id, fields]: Entry, claimed: ClaimedShare | null = null): void {
    const { settlements, cancels, mayBegin } = this.#options
    const entry = new TakenEntry(settlements, {
      group,
      id,
      chars: charsOf(fields),
      onGone: claimed?.onGone ?? null,
      hasAttempts: claimed?.isNoted === true,
    })
    group.add(entry)
    if (fields === null) return settlements.acknowledge(entry)
    // It was on its way when this process was told to end.
    if (!mayBegin()) return settlements.release(entry)
    const event = decodeEntry(group.event, fields)
    if (typeof event === 'string') return void settlements.storeMalformed(entry, fields, event)
    if (event.onlyGroup !== null && event.onlyGroup !== group.name) return settlements.acknowledge(entry)
    if (cancels.has(id, event.frame)) return void this.#takenBack(entry, event, claimed)
    this.#goesOn(entry, event, claimed)
  }

  /** Another process may have replayed it, or what has caused it. */
  async #takenBack(entry: TakenEntry, event: StreamEvent, claimed: ClaimedShare | null): Promise<void> {
    const { settlements, cancels, mayBegin } = this.#options
    await cancels.look()
    if (cancels.has(entry.id, event.frame)) return settlements.acknowledge(entry)
    if (mayBegin()) this.#goesOn(entry, event, claimed)
    else settlements.release(entry)
  }

  #goesOn(entry: TakenEntry, event: StreamEvent, claimed: ClaimedShare | null): void {
    const { hub, replica } = this.#options
    if (event.replica !== replica && this.#received.add(event.frame.id)) hub.record(event.frame, null, false)
    this.#deliver(entry, event, claimed)
  }

  #deliver(entry: TakenEntry, { frame, expiresMs, replyTo }: StreamEvent, claimed: ClaimedShare | null): void {
    const { hub, settlements } = this.#options
    const { group } = entry
    entry.hasExpiry = expiresMs !== 0
    const requester = replyTo === null ? null : this.#requester(replyTo)
    frame.payload = bytesOf(frame.payload)
    const event = hubEventOf(frame, expiresMs, entry, requester)
    const shares = claimed === null ? group.firstShares : [sharedBy(group, claimed, expiresMs === 0)]
    if (hub.take(event, shares) > 0) return
    if (group.isBroadcast) settlements.acknowledge(entry)
    else settlements.release(entry)
  }

  #requester(replyTo: string): Requester {
    const { redis } = this.#options
    // A request has a time limit of its own.
    return {
      open: 0,
      onlyFailures: true,
      reply: (json) => void reply(redis, replyTo, 'reply', json).catch(() => {}),
      failed: (error) => void reply(redis, replyTo, 'failed', error).catch(() => {}),
    }
  }
}

/** @param isLasting true when the event has no expiry: its start needs no note */
function sharedBy(group: StreamGroup, claimed: ClaimedShare, isLasting: boolean): Share {
  const { onGone: _, isNoted = false, ...known } = claimed
  return { ...group.firstShares[0]!, ...known, isBegun: known.isBegun === true && (isNoted || isLasting) }
}

const charsOf = (fields: readonly string[] | null): number => fields?.reduce((sum, field) => sum + field.length, 0) ?? 0
