/** Clients that order, note and check, and what they were told. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Heddle } from '../support/heddle.ts'
import type { Random } from './faults.ts'

/** Longer than any handler may take: who waits longer has been forgotten. */
const ANSWER_TIMEOUT_MS = 30_000

const THINK_MS = 25
const BACK_OFF_MS = 100
/** Of six writes one is a note, which has no row, and one a check, which may hold up its key. */
const KINDS = ['order', 'order', 'order', 'order', 'note', 'check'] as const
/** Of so many checks one fails until it is edited. */
const BAD_EVERY = 8
const MAX_DELAY_MS = 800

/** Whom requests are sent to. */
export type Poster = Pick<Heddle, 'fetch'>
/** The answer's status; `reset`: the connection broke; `silent`: no answer in time. */
export type Outcome = number | 'reset' | 'silent'

/** One POST. Never rejects: what went wrong is the outcome. */
export async function post(service: Poster, path: string, body: object, requestId: string) {
  try {
    const response = await service.fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': requestId },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    })
    const answer = (await response.json()) as { data?: { id?: string } }
    if (response.headers.get('x-request-id') !== requestId) return { outcome: 'reset' as const, id: null }
    return { outcome: response.status, id: answer.data?.id ?? null }
  } catch (error) {
    return { outcome: (error as Error).name === 'TimeoutError' ? ('silent' as const) : ('reset' as const), id: null }
  }
}

/** One write that a client asked for, and what it was told. */
export interface Asked {
  readonly kind: (typeof KINDS)[number] | 'poison'
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
    const kind = KINDS[random(KINDS.length)]!
    const more = {
      ...(kind === 'note' ? { delay_ms: random(MAX_DELAY_MS) } : {}),
      ...(kind === 'check' ? { is_bad: random(BAD_EVERY) === 0 } : {}),
    }
    const asked = await write(service, book, kind, key, more)
    await sleep(isAcknowledged(asked) ? random(THINK_MS) : BACK_OFF_MS)
  }
}

/** One write, noted with its answer. */
export async function write(service: Poster, book: OrderBook, kind: Asked['kind'], key: string, more: object = {}) {
  const number = book.nextNumber()
  const requestId = `kill-${key}-${number}`
  const { outcome, id } = await post(service, `/${kind}s`, { number, key, ...more }, requestId)
  const asked: Asked = { kind, key, number, requestId, outcome, eventId: id }
  book.add(asked)
  return asked
}
