import { setTimeout as sleep } from 'node:timers/promises'
import { plugin } from '#heddle'

/** How long the slow subscriber takes for each event, milliseconds. */
const SLOW_MS = 250
const BATCH = 1000
const FILL_TIMEOUT_MS = 600_000
/** Between two events of the idle subscriber, milliseconds. */
const BETWEEN_MS = 5

/** A slow subscriber that leaves a backlog, and an idle one whose events are timed. */
export default plugin(({ http, event_bus }) => {
  const handled = new Map<number, () => void>()
  let last = 0

  event_bus.subscribe(
    'backlog.slow',
    function slow() {
      return sleep(SLOW_MS)
    },
    { concurrency: 1 },
  )
  event_bus.subscribe('backlog.idle', function idle({ n }) {
    handled.get(n as number)?.()
  })

  /** Publishes for the slow one. The answer tells how many were accepted. */
  http.post('/backlog/fill', { timeoutMs: FILL_TIMEOUT_MS }, async ({ count, note }) => {
    let accepted = 0
    for (let published = 0; published < Number(count); published += BATCH) {
      const batch = Array.from({ length: BATCH }, (_, n) =>
        event_bus.publish('backlog.slow', { n: published + n, note }),
      )
      const outcomes = await Promise.allSettled(batch)
      const taken = outcomes.filter(({ status }) => status === 'fulfilled').length
      accepted += taken
      if (taken < BATCH) break
    }
    return { success: true, data: { accepted } }
  })

  /** Publishes for the idle one, one after another. The answer tells how long each took until it was handled, milliseconds. */
  http.post('/backlog/probe', { timeoutMs: FILL_TIMEOUT_MS }, async ({ count }) => {
    const tookMs: number[] = []
    for (let probe = 0; probe < Number(count); probe++) {
      const n = ++last
      const startMs = performance.now()
      const isHandled = new Promise<void>((resolve) => handled.set(n, resolve))
      await event_bus.publish('backlog.idle', { n })
      await isHandled
      tookMs.push(performance.now() - startMs)
      handled.delete(n)
      await sleep(BETWEEN_MS)
    }
    return { success: true, data: { tookMs } }
  })
})
