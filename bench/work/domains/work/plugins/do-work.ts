import { setTimeout as sleep } from 'node:timers/promises'
import { type EventMeta, type Payload, type PublishOptions, plugin } from '#heddle'

const ORDER_TIMEOUT_MS = 300_000
/** Events that are published before the publisher waits until the bus has taken all of them. */
const BATCH = 1000
const TENANTS = 100
/** So high that it holds up nothing: what is measured is the check. */
const LIMIT = { max: 1_000_000, perMs: 1000 }
/** How long the handler of a tenant's event takes, and how many run at a time: 500 a second. */
const TURN_MS = 20
const AT_A_TIME = 10
/** Between two events of the other tenant. */
const BETWEEN_MS = 5

/** Tasks for the case `work`: events to count, turns to wait for, handlers to cancel and to follow. */
export default plugin(({ http, event_bus }) => {
  let handled = 0
  let allHandled: { count: number; resolve: () => void } | null = null
  const count = (): void => {
    handled++
    if (handled === allHandled?.count) allHandled.resolve()
  }
  event_bus.subscribe('work.plain', function plain() {
    count()
  })
  event_bus.subscribe(
    'work.used',
    function used() {
      count()
    },
    { limit: LIMIT, fair: ({ tenant }: Payload) => String(tenant) },
  )

  /** Publishes events, plain ones or of 100 tenants and three priorities. Answers when all are handled. */
  http.post('/work/run', { timeoutMs: ORDER_TIMEOUT_MS }, async ({ events, used, note }) => {
    handled = 0
    const isHandled = new Promise<void>((resolve) => {
      allHandled = { count: Number(events), resolve }
    })
    await publishAll(Number(events), (n) =>
      used === true
        ? event_bus.publish('work.used', { tenant: `tenant-${n % TENANTS}`, note }, priorityOf(n))
        : event_bus.publish('work.plain', { tenant: `tenant-${n % TENANTS}`, note }),
    )
    await isHandled
    return { success: true, data: { handled } }
  })

  const begun = new Map<number, () => void>()
  let last = 0
  event_bus.subscribe(
    'work.turn',
    function turn({ n }: Payload) {
      begun.get(Number(n))?.()
      return sleep(TURN_MS)
    },
    { concurrency: AT_A_TIME, fair: ({ tenant }: Payload) => String(tenant) },
  )

  http.post('/work/fill', { timeoutMs: ORDER_TIMEOUT_MS }, async ({ events, note }) => {
    await publishAll(Number(events), () => event_bus.publish('work.turn', { tenant: 'large', note }))
    return { success: true }
  })

  /** Publishes events of another tenant, one after another. Answers how long each took until its handler began, milliseconds. */
  http.post('/work/probe', { timeoutMs: ORDER_TIMEOUT_MS }, async ({ events }) => {
    const tookMs: number[] = []
    for (let probe = 0; probe < Number(events); probe++) {
      const n = ++last
      const startMs = performance.now()
      const hasBegun = new Promise<void>((resolve) => begun.set(n, resolve))
      await event_bus.publish('work.turn', { tenant: 'other', n })
      await hasBegun
      tookMs.push(performance.now() - startMs)
      begun.delete(n)
      await sleep(BETWEEN_MS)
    }
    return { success: true, data: { tookMs } }
  })

  const running = new Map<string, EventMeta>()
  /** When the signals of handlers were aborted, milliseconds since the epoch. */
  const aborted = new Map<string, number>()
  event_bus.subscribe(
    'work.long',
    async function long(_: Payload, event: EventMeta) {
      running.set(event.id, event)
      event.progress(0, 1)
      await new Promise<void>((resolve) => {
        event.signal.addEventListener('abort', () => resolve(), { once: true })
        if (event.signal.aborted) resolve()
      })
      aborted.set(event.id, Date.now())
      running.delete(event.id)
    },
    { timeoutMs: ORDER_TIMEOUT_MS },
  )

  http.post('/work/begin', async ({ events }) => {
    const ids = await Promise.all(Array.from({ length: Number(events) }, () => event_bus.publish('work.long', {})))
    return { success: true, data: { ids } }
  })
  http.get('/work/running', () => ({ success: true, data: { ids: [...running.keys()] } }))
  http.get('/work/aborted/:id', ({ id }) => ({ success: true, data: { atMs: aborted.get(String(id)) ?? null } }))
  http.post('/work/cancel', async ({ id }) => {
    const askedAtMs = Date.now()
    await event_bus.cancel(String(id))
    return { success: true, data: { askedAtMs } }
  })
  http.post('/work/cancel-all', async () => ({ success: true, data: await event_bus.cancel({ event: 'work.long' }) }))
  /** Lets handlers of this process report when they have done so. */
  http.post('/work/report', ({ ids }) => {
    for (const id of ids as string[]) running.get(id)?.progress(1, 1, String(Date.now()))
    return { success: true }
  })
  http.get('/work/follow/:id', ({ id }) => event_bus.follow(String(id)))
})

/** One in ten is urgent, one in ten can wait. */
function priorityOf(n: number): PublishOptions {
  return { priority: n % 10 === 0 ? 'high' : n % 10 === 1 ? 'low' : 'normal' }
}

async function publishAll(events: number, publish: (n: number) => Promise<unknown>): Promise<void> {
  for (let published = 0; published < events; published += BATCH) {
    const size = Math.min(BATCH, events - published)
    await Promise.all(Array.from({ length: size }, (_, n) => publish(published + n)))
  }
}
