/** The language of the search: words with a meaning, and texts. It imports nothing, so that it can be tested without a page. */

/** Milliseconds. */
const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** Each with what it takes, as an example. */
const WORDS = {
  status: '5xx',
  method: 'post',
  route: '/orders',
  plugin: 'users.*',
  user: 'anna',
  kind: 'job',
  replica: 'shop-1',
  since: '10m',
}
/** What there is, for a reader. */
export const FILTERS = `Filters are ${Object.keys(WORDS).join(': ')}: >200ms`
const TOKEN = /([a-z_]+):(?:"([^"]*)"?|(\S*))|>(\d+(?:\.\d+)?)(ms|s)?(?=\s|$)|"([^"]*)"?|(\S+)/g
const IDS = /^(?:(?:req|evt|job)_\S+|[0-9a-f]{32})$/
const STATUSES = /^(?:[1-5]xx|[1-5]\d\d|failed|open|unfinished)$/
/** They look for something in particular, which may be what comes by the clock. */
const NAMING = ['route', 'plugin', 'user', 'kind']

/**
 * What was typed, as parameters of `/system/requests`.
 * @returns {{ parameters: Record<string, string>, id: string | null, hints: string[], isNaming: boolean }} `id`: all that was typed is an id;
 *   `hints`: what was not understood, which is left out; `isNaming`: it looks for something in particular
 */
export function parseSearch(query, nowMs = Date.now()) {
  const typed = query.trim()
  const parameters = {}
  const texts = []
  const hints = []
  for (const [, name, quotedValue, plainValue, amount, unit, quoted, bare] of typed.matchAll(TOKEN)) {
    if (name !== undefined) {
      const hint = take(name, quotedValue ?? plainValue, parameters, nowMs)
      if (hint !== null) hints.push(hint)
    } else if (amount !== undefined) parameters.min_ms = String(Number(amount) * UNITS[unit ?? 'ms'])
    else texts.push(quoted ?? bare)
  }
  const text = texts.filter((each) => each !== '').join(' ')
  if (text !== '') parameters.text = text
  const isNaming = text !== '' || NAMING.some((name) => name in parameters)
  return { parameters, id: IDS.test(typed) ? typed : null, hints, isNaming }
}

/** @returns what is wrong with it, or null */
function take(name, value, parameters, nowMs) {
  if (!(name in WORDS)) {
    const meant = Object.keys(WORDS).find((word) => isLike(word, name))
    const instead = meant === undefined ? FILTERS : `Did you mean ${meant}:${value}?`
    return `There is no filter ${name}: ${instead} To look for the text, put it in quotes: "${name}:${value}"`
  }
  if (value === '') return `Enter a value for ${name}:, such as ${name}:${WORDS[name]}`
  if (name === 'since') {
    const sinceMs = timeOf(value, nowMs)
    if (sinceMs === null)
      return `since:${value} is no time: write since:90s, since:10m, since:2h, since:1d or since:09:15`
    parameters.since = String(sinceMs)
    return null
  }
  if (name === 'status' && !STATUSES.test(value))
    return `There is no status:${value}: write a number such as 404, or 5xx, 4xx, failed, open, unfinished`
  if (name === 'kind' && value !== 'job' && value !== 'request')
    return `There is no kind:${value}: write job or request`
  parameters[name] = value
  return null
}

/** Words of the same letters, and words of which one begins the other. */
function isLike(word, name) {
  const sorted = (text) => [...text].sort().join('')
  return sorted(word) === sorted(name) || word.startsWith(name) || name.startsWith(word)
}

function timeOf(value, nowMs) {
  const [, amount, unit] = /^(\d+)([smhd])$/.exec(value) ?? []
  if (amount !== undefined) return nowMs - Number(amount) * UNITS[unit]
  const [, hours, minutes, seconds = '0'] = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/.exec(value) ?? []
  if (hours !== undefined) {
    const day = new Date(nowMs)
    const atMs = day.setHours(Number(hours), Number(minutes), Number(seconds), 0)
    // A time that is still to come is that of yesterday.
    return atMs > nowMs ? atMs - UNITS.d : atMs
  }
  const atMs = /^\d{4}-\d\d-\d\d/.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(atMs) ? null : atMs
}

/** The query with another status; without one where it is empty. */
export function withStatus(query, status) {
  const rest = query.replace(/(^|\s)status:\S*/g, '').trim()
  return status === '' ? rest : `status:${status} ${rest}`.trim()
}
