// Did you mean.

const PREFIXES = /^(HTTP_|LANE|EVENT_BUS_|AUTH_|RDB_|KV_|SCHEDULER_|SHUTDOWN_|HEALTH_CHECK|SQLITE_|SYSTEM_)/
const MAX_EDITS = 2

/** Warnings for variables that are set, unknown, and one or two edits away from a known one. */
export function likelyTypos(env: Readonly<Record<string, string | undefined>>, known: readonly string[]): string[] {
  // Where other frameworks and hosts of applications say the port.
  const port = env.PORT && !env.HTTP_PORT ? ['PORT is not read: HTTP_PORT is the port to listen on'] : []
  const unknown = Object.keys(env).filter((name) => PREFIXES.test(name) && !known.includes(name))
  const typos = unknown.flatMap((name) => {
    const meant = known.find((candidate) => edits(name, candidate) <= MAX_EDITS)
    return meant ? [`${name} is not a variable of the runtime: was ${meant} meant?`] : []
  })
  return [...port, ...typos]
}

/** Levenshtein distance in which two neighbours that are swapped are one edit (optimal string alignment), one row of the table at a time. */
function edits(from: string, to: string): number {
  let before: number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const replaced = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1)
      const isSwapped = from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      const swapped = isSwapped ? before[j - 2]! + 1 : replaced
      next.push(Math.min(replaced, swapped, row[j]! + 1, next[j - 1]! + 1))
    }
    before = row
    row = next
  }
  return row[to.length]!
}

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
