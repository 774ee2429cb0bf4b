import type { DeadLetter, DeadLetterPage } from '../../contracts/event-bus.ts'

/** True when the letter is among those that are wanted; its age in the pages aside. */
export function isWanted(letter: DeadLetter, wanted: DeadLetterPage): boolean {
  const { event, subscriber, error, since, until, parked, ids } = wanted
  if (parked !== undefined && (letter.parked === true) !== parked) return false
  if (event !== undefined && letter.event !== event) return false
  if (subscriber !== undefined && letter.subscriber !== subscriber) return false
  if (error !== undefined && !letter.error.includes(error)) return false
  // ISO 8601 of one form sorts as the times do.
  if (since !== undefined && letter.timestamp < isoOf(since)) return false
  if (until !== undefined && letter.timestamp >= isoOf(until)) return false
  return ids === undefined || ids.includes(letter.id)
}

const isoOf = (time: Date | string): string => (typeof time === 'string' ? time : time.toISOString())
