import { setTimeout as sleep } from 'node:timers/promises'
import { threadId } from 'node:worker_threads'
import { plugin } from '#heddle'
import { epochMs, TICK_EVENT, TICK_NAMESPACE, type TickCount } from '../tick-count.ts'

const REPORT_DELAY_MS = 20
const RETRY_FULL_MS = 1
const ELSEWHERE_MS = 5
const RUN_TIMEOUT_MS = 120_000

interface Order {
  run?: string
  count?: number
  /** Events that are published before the publisher waits until the bus has taken all of them. */
  batch?: number
  /** Goes with each event. */
  note?: string
  /** Of how many keys they are, in turn. Left out: of none. */
  keys?: number
  /** Answer 409 unless this thread has got the request, and has not had one for this run. */
  thread?: number
  /** End the subscription of this thread first, so that every event goes to another one. */
  leave?: boolean
}

/**
 * Publishes `bench.tick` a hundred thousand times and counts the deliveries per lane. Publisher and subscriber are one plugin, because the
 * lane that publishes first ends its own subscription, so that all events are handled in another lane.
 */
export default plugin(({ http, event_bus, state }) => {
  /** The last run that this thread has published. */
  let lastRun: string | undefined
  let seen: TickCount = { run: '', handled: 0, crossed: 0, misplaced: 0, lastAtMs: 0 }
  /** The last event of each publisher and key. */
  const last = new Map<string, number>()
  let report: NodeJS.Timeout | undefined

  const unsubscribe = event_bus.subscribe(TICK_EVENT, (tick) => {
    const { run, thread, key, n } = tick as { run: string; thread: number; key?: string; n?: number }
    if (run !== seen.run) {
      seen = { run, handled: 0, crossed: 0, misplaced: 0, lastAtMs: 0 }
      last.clear()
    }
    if (key !== undefined) {
      if (n! <= (last.get(key) ?? -1)) seen.misplaced++
      last.set(key, n!)
    }
    seen.handled++
    if (thread !== threadId) seen.crossed++
    seen.lastAtMs = epochMs()
    report ??= setTimeout(() => {
      report = undefined
      void state.set(String(threadId), seen, { namespace: TICK_NAMESPACE })
    }, REPORT_DELAY_MS)
  })

  http.post('/bench/publish', { timeoutMs: RUN_TIMEOUT_MS }, async (data, context) => {
    const { run = '', count = 0, batch = 1000, note, keys, thread, leave } = data as Order
    if (thread !== undefined && (thread !== threadId || run === lastRun)) {
      // Meanwhile the next request goes to another lane.
      await sleep(ELSEWHERE_MS)
      context.setStatus(409)
      return { success: false, error: 'Another thread publishes' }
    }
    lastRun = run
    if (leave) unsubscribe()
    const startedAtMs = epochMs()
    const tick: Record<string, string | number> = { run, thread: threadId }
    if (note !== undefined) tick.note = note
    let refused = 0
    for (let published = 0; published < count; published += batch) {
      const publishing: Promise<number>[] = []
      for (let n = published; n < Math.min(count, published + batch); n++)
        publishing.push(keys === undefined ? publishOne(tick) : publishKeyed(tick, n, n % keys))
      for (const times of await Promise.all(publishing)) refused += times
    }
    return { success: true, data: { thread: threadId, startedAtMs, publishedAtMs: epochMs(), refused } }
  })

  http.get('/bench/count', async () => {
    const lanes: Record<string, unknown> = {}
    for (const key of await state.keys({ namespace: TICK_NAMESPACE })) {
      lanes[key] = await state.get(key, { namespace: TICK_NAMESPACE })
    }
    return { success: true, data: { lanes } }
  })

  /** Of the same key in all processes, with its place among those of this publisher. */
  function publishKeyed(tick: Record<string, string | number>, n: number, key: number): Promise<number> {
    return publishOne({ ...tick, n, key: `${process.pid} ${key}` }, { key: `key ${key}` })
  }

  /** @returns how often the bus was full: then it rejects the event, and the publisher tries again */
  async function publishOne(tick: Record<string, string | number>, options?: { key: string }): Promise<number> {
    for (let refused = 0; ; refused++) {
      try {
        await event_bus.publish(TICK_EVENT, tick, options)
        return refused
      } catch (error) {
        if ((error as { code?: string }).code !== 'EVENT_BUS_FULL') throw error
        await sleep(RETRY_FULL_MS)
      }
    }
  }

  return { onStop: () => clearTimeout(report) }
})
