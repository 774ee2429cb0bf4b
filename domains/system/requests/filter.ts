import { type Data, HeddleError, type RequestFilter } from '#heddle'

/** What one parameter may be, and what is said where it is something else. */
interface Wanted {
  fits: RegExp
  says: string
}

const STATUS: Wanted = {
  fits: /^(?:[1-5]xx|0|[1-5]\d\d|failed|open|unfinished)$/,
  says: 'Expected 4xx, 5xx, a status such as 404, failed, open or unfinished',
}
const JOB: Wanted = { fits: /^[^/]{1,200}\/.{1,200}$/s, says: 'Expected a job: <plugin>/<job>' }
const KIND: Wanted = { fits: /^(?:request|job)$/, says: 'Expected request or job' }
const NOISE: Wanted = { fits: /^(?:without|only)$/, says: 'Expected without or only' }
const METHOD: Wanted = { fits: /^[A-Za-z-]{1,20}$/, says: 'Expected a method such as GET' }
const TEXT: Wanted = { fits: /^.{0,500}$/s, says: 'Expected one text of at most 500 characters' }
const LIMIT: Wanted = { fits: /^(?:[1-9]\d{0,2}|1000)$/, says: 'Expected a whole number from 1 to 1000' }
const NUMBER: Wanted = { fits: /^\d{1,15}(?:\.\d{1,9})?$/, says: 'Expected a number of milliseconds' }

const TEXTS = {
  status: STATUS,
  method: METHOD,
  route: TEXT,
  plugin: TEXT,
  user: TEXT,
  job: JOB,
  kind: KIND,
  noise: NOISE,
  replica: TEXT,
  text: TEXT,
}
const NUMBERS = { limit: LIMIT, before: NUMBER, since: NUMBER, min_ms: NUMBER }

/** The filter that the query of `/system/requests` means. @throws HTTP_VALIDATION with every parameter that is wrong */
export function filterOf(query: Data): RequestFilter {
  const details: { path: string; message: string }[] = []
  const read = (name: string, { fits, says }: Wanted): string | undefined => {
    const value: unknown = query[name]
    if (value === undefined || (typeof value === 'string' && fits.test(value))) return value
    details.push({ path: name, message: says })
    return undefined
  }
  const filter: Record<string, string | number> = {}
  for (const [name, wanted] of Object.entries(TEXTS)) {
    const value = read(name, wanted)
    if (value !== undefined) filter[name] = value
  }
  for (const [name, wanted] of Object.entries(NUMBERS)) {
    const value = read(name, wanted)
    if (value !== undefined) filter[name] = Number(value)
  }
  if (details.length > 0) throw new HeddleError('HTTP_VALIDATION', undefined, { details })
  return filter
}
