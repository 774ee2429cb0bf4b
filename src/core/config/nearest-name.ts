import { edits } from './typos.ts'

/** The name that was probably meant: the most similar one, when it is similar enough; else undefined. */
export function nearestName(wanted: string, known: readonly string[]): string | undefined {
  const bound = Math.max(1, Math.floor(wanted.length / 3))
  const distance = (name: string): number => edits(wanted.toLowerCase(), name.toLowerCase())
  const nearest = known.reduce<string | undefined>(
    (best, name) => (best === undefined || distance(name) < distance(best) ? name : best),
    undefined,
  )
  return nearest !== undefined && distance(nearest) <= bound ? nearest : undefined
}
