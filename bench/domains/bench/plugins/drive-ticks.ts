import { threadId } from 'node:worker_threads'
import { type HttpContext, Plugin, type Tools } from '#heddle'
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
  /** Answer 409 unless this thread has got the request, and has not had one for this run. */
  thread?: number
  /** End the subscription of this thread first, so that every event goes to another one. */
  leave?: boolean
}

/**
 * Publishes `bench.tick` a hundred thousand times and counts the deliveries per lane. Publisher and subscriber are one plugin, because the
 * lane that publishes first ends its own subscription, so that all events are handled in another lane.
 */
export default class DriveTicks extends Plugin {
  #http
  #bus
  #state
  #unsubscribe: (() => void) | undefined
  /** The last run that this thread has published. */
  #run: string | undefined
  #count: TickCount = { run: '', handled: 0, crossed: 0, lastAtMs: 0 }
  #report: NodeJS.Timeout | undefined

  constructor({ http, event_bus, state }: Tools) {
    super()
    this.#http = http
    this.#bus = event_bus
    this.#state = state
  }

  override async onBoot() {
    this.#unsubscribe = this.#bus.subscribe(TICK_EVENT, (tick) => this.#tick(tick as { run: string; thread: number }))
    this.#http.addEndpoint('/bench/publish', 'POST', (data, context) => this.publish(data as Order, context), {
      tags: ['bench'],
      timeoutMs: RUN_TIMEOUT_MS,
    })
    this.#http.addEndpoint('/bench/count', 'GET', () => this.counts(), { tags: ['bench'] })
  }

  override async onStop() {
    clearTimeout(this.#report)
  }

  async publish({ run = '', count = 0, batch = 1000, note, thread, leave }: Order, context: HttpContext) {
    if (thread !== undefined && (thread !== threadId || run === this.#run)) {
      // Meanwhile the next request goes to another lane.
      await new Promise((resolve) => setTimeout(resolve, ELSEWHERE_MS))
      context.setStatus(409)
      return { success: false, error: 'Another thread publishes' }
    }
    this.#run = run
    if (leave) this.#unsubscribe?.()
    const startedAtMs = epochMs()
    const tick: Record<string, string | number> = { run, thread: threadId }
    if (note !== undefined) tick.note = note
    let refused = 0
    for (let published = 0; published < count; published += batch) {
      const publishing: Promise<number>[] = []
      for (let i = published; i < Math.min(count, published + batch); i++) publishing.push(this.#publishOne(tick))
      for (const times of await Promise.all(publishing)) refused += times
    }
    return { success: true, data: { thread: threadId, startedAtMs, publishedAtMs: epochMs(), refused } }
  }

  async counts() {
    const lanes: Record<string, unknown> = {}
    for (const key of await this.#state.keys({ namespace: TICK_NAMESPACE })) {
      lanes[key] = await this.#state.get(key, { namespace: TICK_NAMESPACE })
    }
    return { success: true, data: { lanes } }
  }

  /** @returns how often the bus was full: then it rejects the event, and the publisher tries again */
  async #publishOne(tick: Record<string, string | number>): Promise<number> {
    for (let refused = 0; ; refused++) {
      try {
        await this.#bus.publish(TICK_EVENT, tick)
        return refused
      } catch (error) {
        if ((error as { code?: string }).code !== 'EVENT_BUS_FULL') throw error
        await new Promise((resolve) => setTimeout(resolve, RETRY_FULL_MS))
      }
    }
  }

  #tick({ run, thread }: { run: string; thread: number }) {
    if (run !== this.#count.run) this.#count = { run, handled: 0, crossed: 0, lastAtMs: 0 }
    this.#count.handled++
    if (thread !== threadId) this.#count.crossed++
    this.#count.lastAtMs = epochMs()
    this.#report ??= setTimeout(() => {
      this.#report = undefined
      void this.#state.set(String(threadId), this.#count, { namespace: TICK_NAMESPACE })
    }, REPORT_DELAY_MS)
  }
}
