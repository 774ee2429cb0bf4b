import type { TestContext } from 'node:test'
import type { LostReason } from '../../../src/contracts/event-bus.ts'
import type { BlackBox } from '../../../src/contracts/registry.ts'
import { SYSTEM_CHANCE, SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import type { SubscriberInstance, SubscriberThread } from '../../../src/primary/events/consumer.ts'
import { Hub, type HubOptions } from '../../../src/primary/events/hub.ts'
import type { EventFrame } from '../../../src/transport/frames/event-frame.ts'

/** What a thread was given: the delivery's id, the event's, and the attempt's number. */
export interface Taken {
  id: number
  event: string
  attempt: number
}

/** A thread that takes everything and answers when the test says so. */
export interface FakeThread extends SubscriberThread {
  hasRoom: boolean
  isStill: boolean
  heldMs: number
  deliveriesInFlight: number
  readonly taken: Taken[]
  /** Ids of the events that it was given. */
  readonly events: string[]
  readonly abandoned: number[]
  /** Deliveries whose handlers were told to end. */
  readonly lost: [id: number, reason: LostReason][]
}

export function fakeThread(isQuarantine = false): FakeThread {
  const taken: Taken[] = []
  const abandoned: number[] = []
  const lost: [number, LostReason][] = []
  return {
    threadId: 0,
    isQuarantine,
    deliveriesInFlight: 0,
    isStill: false,
    heldMs: 0,
    hasRoom: true,
    room: 100,
    send: (id, { id: event, attempt }) => taken.push({ id, event, attempt }) > 0,
    lose: (id, reason) => void lost.push([id, reason]),
    abandon: (id) => void abandoned.push(id),
    taken,
    get events() {
      return taken.map(({ event }) => event)
    },
    abandoned,
    lost,
  }
}

export const instanceOf = (thread: SubscriberThread, plugin = 'shop.Sell'): SubscriberInstance => ({
  thread,
  subscriberIndex: 0,
  plugin,
  identity: `${plugin}.handle`,
  isPaused: false,
})

export const eventOf = (id: string, more: Partial<EventFrame> = {}): EventFrame => ({
  id,
  parentId: null,
  beginBy: 0,
  ancestors: '',
  event: 'order.placed',
  emitter: 'test.Emitter',
  requestId: 'req_1',
  key: null,
  trace: '',
  payloadKeys: '',
  timestampMs: Date.now(),
  delayMs: 0,
  ttlMs: 0,
  unique: null,
  shares: '',
  seq: 0,
  subscriber: 0,
  attempt: 0,
  payload: '{}',
  ...more,
})

/** Of a lane that died of something else than its orders. */
export const BOX = { message: 'it died', guilty: null, steps: [] } as unknown as BlackBox
export const NOTHING: ReadonlySet<number> = new Set()

/** A hub that tells what it asks of the supervisor, and ends with the test. */
export function hubOf(t: TestContext, options: Partial<HubOptions> = {}) {
  const wishes: boolean[] = []
  const warnings: string[] = []
  const hub = new Hub({
    clock: SYSTEM_CLOCK,
    chance: SYSTEM_CHANCE,
    maxQueue: 100,
    onQuarantine: (isWanted) => void wishes.push(isWanted),
    onQuarantineUsed: () => {},
    log: (_, message) => void warnings.push(message),
    ...options,
  })
  t.after(() => hub.close())
  return {
    hub,
    /** Whether a quarantine lane is wanted, each time that it changed. */
    wishes,
    warnings,
  }
}
