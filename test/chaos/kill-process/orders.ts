import { setTimeout as sleep } from 'node:timers/promises'
import { type Poster, post } from '../../support/clients.ts'
import type { Outcome } from '../../support/ledger.ts'
import type { Random } from '../schedule.ts'

const THINK_MS = 25
const BACK_OFF_MS = 100
/** Of six writes one is a note, which has no row, and one a check, which may hold up its key. */
const KINDS = ['order', 'order', 'order', 'order', 'note', 'check'] as const
/** Of so many checks one fails until it is edited. */
const BAD_EVERY = 8
const MAX_DELAY_MS = 800

/** One write that a client asked for, and what it was told. */
export interface Asked {
  readonly kind: (typeof KINDS)[number]
  readonly key: string
  readonly number: number
  readonly requestId: string
  readonly outcome: Outcome
  /** The event; null unless the answer named it. */
  readonly eventId: string | null
}

/** Everything that clients have asked for. */
export class OrderBook {
  readonly asked: Asked[] = []
  acknowledged = 0
  /** The longest time without an acknowledged write, milliseconds. */
  longestGapMs = 0
  #lastMs = performance.now()
  #number = 0

  nextNumber(): number {
    return ++this.#number
  }

  add(asked: Asked): void {
    this.asked.push(asked)
    if (!isAcknowledged(asked)) return
    this.acknowledged++
    this.longestGapMs = Math.max(this.longestGapMs, performance.now() - this.#lastMs)
    this.#lastMs = performance.now()
  }

  /** Outcome → how often. */
  outcomes(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { outcome } of this.asked) counts[outcome] = (counts[outcome] ?? 0) + 1
    return counts
  }
}

export const isAcknowledged = (asked: Asked): asked is Asked & { eventId: string } =>
  asked.outcome === 201 && asked.eventId !== null

/** Writes for one key, one after another, until it is told to stop: the numbers of the key are in the order of its commits. */
export async function writeOrders(
  service: Poster,
  book: OrderBook,
  key: string,
  random: Random,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    const number = book.nextNumber()
    const kind = KINDS[random(KINDS.length)]!
    const requestId = `kill-${key}-${number}`
    const body = {
      number,
      key,
      ...(kind === 'note' ? { delay_ms: random(MAX_DELAY_MS) } : {}),
      ...(kind === 'check' ? { is_bad: random(BAD_EVERY) === 0 } : {}),
    }
    const { outcome, id } = await post(service, `/${kind}s`, body, requestId)
    const asked: Asked = { kind, key, number, requestId, outcome, eventId: id }
    book.add(asked)
    await sleep(isAcknowledged(asked) ? random(THINK_MS) : BACK_OFF_MS)
  }
}
