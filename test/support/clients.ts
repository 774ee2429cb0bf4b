import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../chaos/schedule.ts'
import type { Heddle } from './heddle.ts'
import type { Ledger, Outcome, Subject } from './ledger.ts'

/** Longer than any handler may take: who waits longer has been forgotten. */
const ANSWER_TIMEOUT_MS = 30_000
/** Pause after an answer that was no success. */
const BACK_OFF_MS = 50

/** Whom requests are sent to. */
export type Poster = Pick<Heddle, 'fetch'>

export interface Answer {
  outcome: Outcome
  id: string | null
}

/** One POST. Never rejects: what went wrong is the outcome. */
export async function post(service: Poster, path: string, body: object, requestId: string): Promise<Answer> {
  try {
    const response = await service.fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': requestId },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    })
    const answer = (await response.json()) as { data?: { id?: string } }
    if (response.headers.get('x-request-id') !== requestId) return { outcome: 'reset', id: null }
    return { outcome: response.status, id: answer.data?.id ?? null }
  } catch (error) {
    return { outcome: (error as Error).name === 'TimeoutError' ? 'silent' : 'reset', id: null }
  }
}

/** What every write is told apart by, and written down in. */
export interface Books {
  readonly heddle: Heddle
  readonly ledger: Ledger
  readonly nextNumber: () => number
  readonly seed: number
}

/** One write, written down with its answer. */
export async function write(
  { heddle, ledger, seed }: Books,
  subject: Subject,
  path: string,
  body: object,
  { number, key, course }: { number: number; key: string; course: string },
): Promise<Outcome> {
  const requestId = `chaos-${seed}-${number}`
  const sentMs = performance.now()
  const { outcome, id } = await post(heddle, path, body, requestId)
  ledger.record({ subject, requestId, key, course, outcome, id }, sentMs, performance.now())
  return outcome
}

const isSuccess = (outcome: Outcome): boolean => typeof outcome === 'number' && outcome < 300

/** Signs up one user after another until it is told to stop. */
export async function writeUsers(books: Books, random: Random, stop: AbortSignal, thinkMs: number): Promise<void> {
  while (!stop.aborted) {
    const number = books.nextNumber()
    const email = `user-${number}@example.org`
    const body = { name: `User ${number}`, email, password: `password ${number}` }
    const outcome = await write(books, 'user', '/users', body, { number, key: email, course: '' })
    await sleep(isSuccess(outcome) ? random(thinkMs) : BACK_OFF_MS)
  }
}

/** Counts one event after another until it is told to stop. */
export async function countEvents(books: Books, random: Random, stop: AbortSignal, thinkMs: number): Promise<void> {
  while (!stop.aborted) {
    const number = books.nextNumber()
    const course = courseOf(random)
    const outcome = await write(
      books,
      'count',
      '/chaos/count',
      { number, course },
      { number, key: String(number), course },
    )
    await sleep(isSuccess(outcome) ? random(thinkMs) : BACK_OFF_MS)
  }
}

/** Of a thousand events 20 stumble, 3 hang and 3 fail for good: fewer than the dead-letter store holds, in any run. */
function courseOf(random: Random): string {
  const draw = random(1000)
  if (draw < 20) return 'stumbles'
  if (draw < 23) return 'hangs'
  return draw < 26 ? 'fails' : 'straight'
}
