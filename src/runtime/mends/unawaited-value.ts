import { linesOf, type SourcePlace } from '../../core/errors/source-place.ts'

/** Lines above the fault in which the value is looked for. */
const LINES = 30
/** Calls of tools that return promises. */
const CALLS =
  'query|queryOne|execute|transaction|get|set|cached|increment|request|publish|verifyToken|verifyPassword|hashPassword|fetch|json|text'

/** The mend of a value that is used as if its promise had been awaited; undefined when the source above shows nothing of the kind. */
export function unawaitedMend(name: string, place: SourcePlace | undefined): string | undefined {
  if (place === undefined) return undefined
  const lines = linesOf(place.file).slice(Math.max(0, place.line - LINES), place.line)
  const made = new RegExp(
    `\\b${name.replace('$', '\\$')}\\s*(?::[^=]+)?=\\s*(?!await\\b)([\\w$.#]*\\b(?:${CALLS}))\\s*[(<]`,
  )
  const found = lines
    .reverse()
    .map((line) => made.exec(line))
    .find((match) => match !== null)
  return found ? `${name} is a promise: write ${name} = await ${found[1]}(…).` : undefined
}
