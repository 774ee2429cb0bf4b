/** Formats numbers, times and sizes for people. It imports nothing. */

const WHOLE = new Intl.NumberFormat('en')
const TWO_DIGITS = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

export function count(value) {
  return WHOLE.format(value)
}

export function rate(perSecond) {
  return perSecond >= 10 || perSecond === 0 ? WHOLE.format(Math.round(perSecond)) : TWO_DIGITS.format(perSecond)
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`
}

/** Milliseconds with at most three significant digits. */
export function duration(ms) {
  if (ms === null || ms === undefined) return '–'
  // Each limit is where rounding reaches the next unit.
  if (ms < 0.9995) return `${Math.round(ms * 1000)} µs`
  if (ms < 9.95) return `${ms.toFixed(1)} ms`
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`
}

/** A time between two timestamps, which have whole milliseconds. */
export function offset(ms) {
  return ms < 1000 ? `${ms} ms` : duration(ms)
}

export function bytes(value) {
  if (value === null || value === undefined) return '–'
  let unit = 0
  let shown = value
  while (shown >= 1000 && unit < UNITS.length - 1) {
    shown /= 1024
    unit++
  }
  return `${shown < 10 && unit > 0 ? shown.toFixed(1) : Math.round(shown)} ${UNITS[unit]}`
}

/** The time of day of an ISO 8601 timestamp, in the reader's zone, with milliseconds. */
export function clock(timestamp) {
  const date = new Date(timestamp)
  const pad = (value, digits) => String(value).padStart(digits, '0')
  return `${pad(date.getHours(), 2)}:${pad(date.getMinutes(), 2)}:${pad(date.getSeconds(), 2)}.${pad(date.getMilliseconds(), 3)}`
}

export function ago(timestamp) {
  const ms = Date.now() - Date.parse(timestamp)
  return ms < 1000
    ? 'just now'
    : `${duration(ms < 60_000 ? Math.round(ms / 1000) * 1000 : ms).replace('.0 s', ' s')} ago`
}

const DAY = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short' })

/** The day before a time of day, unless it is today. */
export function dayBefore(timestamp) {
  const date = new Date(timestamp)
  return date.toDateString() === new Date().toDateString() ? '' : `${DAY.format(date)} `
}

/** The time of day without milliseconds, with the day unless it is today. */
export const clockSeconds = (timestamp) => `${dayBefore(timestamp)}${clock(timestamp).slice(0, 8)}`

/** The end of an id, by which ids of the same time differ: a time-ordered id begins with its time. */
export function shortId(id) {
  return id.length <= 12 ? id : `…${id.slice(-8)}`
}
