import { duration } from './format.js'

/** With fewer calls, before or now, a percentile says little. */
const CALLS_MIN = { p50_ms: 5, p95_ms: 40 }
/** A percentile that is off by less is no change: its factor, and milliseconds. */
const FACTOR = 1.5
const LEAST_MS = 2
/** Of all calls. */
const ERRORS_MORE = 0.01
const SHOWN_MAX = 5

/** Whether the handler has become slower or faster. @param key `p50_ms` or `p95_ms` */
export function isChanged(handler, key) {
  const { calls, before } = handler
  const now = handler[key]
  const then = before?.[key]
  if (now === null || !then || calls < CALLS_MIN[key] || before.calls < CALLS_MIN[key]) return false
  const factor = now / then
  return Math.abs(now - then) >= LEAST_MS && (factor >= FACTOR || factor <= 1 / FACTOR)
}

/** What is different with the present code, the worst first. */
export function changesOf(plugins) {
  const changes = []
  for (const handler of plugins.flatMap(({ handlers }) => handlers)) {
    const { before } = handler
    const key = ['p50_ms', 'p95_ms'].find((each) => isChanged(handler, each))
    if (key !== undefined) {
      const [now, then] = [handler[key], before[key]]
      const text = `takes ${duration(now)} instead of ${duration(then)} at ${key.slice(0, 3)}`
      changes.push({ handler, text, isWorse: now > then, weight: Math.abs(Math.log(now / then)) })
    }
    const more = errorShare(handler) - errorShare(before)
    if (handler.calls > 0 && Math.abs(more) > ERRORS_MORE) {
      const then = before === null ? 'it was not called before' : `instead of ${percent(errorShare(before))}`
      const text = `fails in ${percent(errorShare(handler))} of its calls${before === null ? ',' : ''} ${then}`
      changes.push({ handler, text, isWorse: more > 0, weight: 10 + Math.abs(more) })
    }
  }
  return changes.sort((a, b) => b.isWorse - a.isWorse || b.weight - a.weight).slice(0, SHOWN_MAX)
}

const errorShare = (figures) => (figures === null || figures.calls === 0 ? 0 : figures.errors / figures.calls)
const percent = (share) => `${share > 0 && share < 0.01 ? '< 1' : Math.round(share * 100)} %`
