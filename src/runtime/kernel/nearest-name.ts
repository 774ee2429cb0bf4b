import { edits } from '../../core/config/typos.ts'

/** What was probably meant: the name that differs least, when it differs little; undefined when none does. */
export function nearestName(wanted: string, known: readonly string[]): string | undefined {
  const bound = Math.max(1, Math.floor(wanted.length / 3))
  const distance = (name: string): number => edits(wanted.toLowerCase(), name.toLowerCase())
  const nearest = known.reduce<string | undefined>(
    (best, name) => (best === undefined || distance(name) < distance(best) ? name : best),
    undefined,
  )
  return nearest !== undefined && distance(nearest) <= bound ? nearest : undefined
}
