// Makes an event of each entry that this process has, in the order of its key, and gives it to the hub.
import { decodeEntry, type StreamEvent } from '../../runtime/streams/entry.ts'
import { retryWhile } from '../../runtime/streams/publisher.ts'
import type { Entry } from '../../runtime/streams/stream-commands.ts'
import { reply } from '../../runtime/streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'
import { asBytes, type EventFrame } from '../../transport/frames/event-frame.ts'
import { hubEventOf, type Requester, type Share } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { KeyGate } from './key-gate.ts'
import type { StreamPlaces } from './places.ts'
import { FIRST_ATTEMPT, type StreamSettlements } from './settlements.ts'
import { type StreamGroup, TakenEntry } from './stream-group.ts'

/** Before the store is asked again whether an entry may begin, milliseconds. */
const RETRY_MS = 250

/** What is known of an entry that another consumer had before. */
export interface ClaimedShare extends Omit<Share, 'group' | 'instance'> {
  /** True when whoever had it has noted that it has begun. */
  isNoted?: boolean
  /** Told when it is done, or given back. */
  onEnded?: () => void
  /** Waits for its turn among those that have been given out too often. Default: none. */
  turn?: (entry: TakenEntry, deliver: (share: ClaimedShare) => void) => void
}

interface StreamDeliveriesOptions {
  redis: RedisClient
  hub: Hub
  /** REPLICA_ID. */
  replica: string
  settlements: StreamSettlements
  gate: KeyGate
  places: StreamPlaces
  /** False when this process begins nothing any more. */
  mayBegin: () => boolean
  /** Told of each event that another replica has published. */
  received: (frame: EventFrame) => void
}

export class StreamDeliveries {
  readonly #options: StreamDeliveriesOptions

  constructor(options: StreamDeliveriesOptions) {
    this.#options = options
  }

  /** @param fields null: it was cut from the stream while it was on its way. @param claimed null: nobody has had it before */
  take(group: StreamGroup, [id, fields]: Entry, claimed: ClaimedShare | null = null): void {
    const { settlements, gate, received, replica } = this.#options
    const entry = new TakenEntry(group, id, charsOf(fields), settlements)
    group.add(entry)
    if (fields === null) return settlements.acknowledge(entry)
    const event = decodeEntry(group.event, id, fields)
    if (typeof event === 'string') return void settlements.storeMalformed(entry, fields, event)
    if (event.onlyGroup !== null && event.onlyGroup !== group.name) return settlements.acknowledge(entry)
    if (event.replica !== replica) received(event.frame)
    entry.letter = event.letter
    if (group.consumer?.parks === true && !group.isBroadcast) entry.key = event.key
    const deliver = (): void => {
      if (claimed?.turn === undefined) this.#deliver(entry, event, claimed)
      else claimed.turn(entry, (share) => this.#deliver(entry, event, share))
    }
    const { key } = entry
    const begin = key === null ? deliver : () => void this.#admit(entry, key, deliver)
    if (event.after === null) begin()
    else gate.wait(entry, event.after, begin)
  }

  /** Begins, or waits in the store behind a dead letter of its key. */
  async #admit(entry: TakenEntry, key: string, begin: () => void): Promise<void> {
    const { places, settlements, mayBegin } = this.#options
    let isAdmitted: boolean | null = null
    const ask = async (): Promise<void> => {
      isAdmitted = await places.admit(entry, key)
    }
    await retryWhile(mayBegin, ask, { pauseMs: RETRY_MS })
    if (isAdmitted === true) begin()
    else if (isAdmitted === false) settlements.setAside(entry)
    else settlements.release(entry)
  }

  #deliver(entry: TakenEntry, { frame, expiresMs, replyTo }: StreamEvent, claimed: ClaimedShare | null): void {
    const { hub, settlements } = this.#options
    const { group } = entry
    const { onEnded = null, isNoted = false, turn: _, ...known } = claimed ?? FIRST_ATTEMPT_OF_ALL
    entry.onEnded = onEnded
    entry.hasAttempts = isNoted
    entry.isMortal = expiresMs !== 0
    const requester = replyTo === null ? null : this.#requester(replyTo)
    // Its order is the gate's affair.
    const event = hubEventOf({ ...asBytes(frame), key: null }, expiresMs, entry, requester)
    const isBegun = known.isBegun === true && (isNoted || expiresMs === 0)
    const share = { ...known, isBegun, ...(group.isBroadcast ? {} : { instance: null }) }
    if (hub.take(event, [{ ...share, group: group.subscriber }]) > 0) return
    if (group.isBroadcast) settlements.acknowledge(entry)
    else settlements.release(entry)
    entry.over()
  }

  #requester(replyTo: string): Requester {
    const { redis } = this.#options
    // The request has a time limit of its own.
    return {
      open: 0,
      onlyFailures: true,
      reply: (json) => void reply(redis, replyTo, 'reply', json).catch(() => {}),
      failed: (error) => void reply(redis, replyTo, 'failed', error).catch(() => {}),
    }
  }
}

const FIRST_ATTEMPT_OF_ALL: ClaimedShare = FIRST_ATTEMPT

const charsOf = (fields: readonly string[] | null): number => fields?.reduce((sum, field) => sum + field.length, 0) ?? 0
