import type { BusTransport, DeadLetterFilter } from '../../contracts/event-bus.ts'

/** Replays the oldest letters for which the filter holds, one after another. @returns how many were replayed */
export async function replayLetters(
  bus: BusTransport,
  { limit, ...filter }: DeadLetterFilter & { limit: number },
): Promise<number> {
  // All ids first: a replay that fails again leaves a new letter.
  const pages: string[][] = []
  for (let before: string | undefined; ; ) {
    const letters = await bus.deadLetters(before === undefined ? filter : { ...filter, before })
    if (letters.length === 0) break
    pages.unshift(letters.map(({ id }) => id))
    before = letters[0]!.id
  }
  let replayed = 0
  for (const id of pages.flat().slice(0, limit)) if (await bus.replayDeadLetter(id)) replayed++
  return replayed
}
