import { setTimeout as sleep } from 'node:timers/promises'
import { type EventMeta, type Payload, type PublishOptions, plugin } from '#heddle'

const ORDER_TIMEOUT_MS = 300_000
/** Events that are not handled by then are lost. */
const HANDLED_TIMEOUT_MS = 30_000
/** Events that are published before the publisher waits until the bus has taken all of them. */
const BATCH = 500
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
  /** What waits until so many are handled. */
  let awaited: { count: number; resolve: () => void } | null = null
  const count = (): void => {
    handled++
    if (awaited !== null && handled >= awaited.count) awaited.resolve()
  }
  const untilHandled = (count: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${handled} of ${count} are handled`)), HANDLED_TIMEOUT_MS)
      awaited = {
        count,
        resolve() {
          clearTimeout(late)
          resolve()
        },
      }
      if (handled >= count) awaited.resolve()
    })
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

  /**
   * Publishes events, plain ones or of 100 tenants and three priorities, and never more than some ahead of their handler. Answers when all are
   * handled.
   */
  http.post('/work/run', { timeoutMs: ORDER_TIMEOUT_MS }, async ({ events, used, ahead, note }) => {
    handled = 0
    await publishAll(
      Number(events),
      (n) => {
        const payload = { tenant: `tenant-${n % TENANTS}`, note }
        return used === true
          ? event_bus.publish('work.used', payload, priorityOf(n))
          : event_bus.publish('work.plain', payload)
      },
      (published) => untilHandled(published - Number(ahead)),
    )
    await untilHandled(Number(events))
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

/** @param published is called after each batch, with how many are published */
async function publishAll(
  events: number,
  publish: (n: number) => Promise<unknown>,
  published: (count: number) => Promise<void> = async () => {},
): Promise<void> {
  for (let count = 0; count < events; ) {
    const first = count
    const size = Math.min(BATCH, events - first)
    await Promise.all(Array.from({ length: size }, (_, n) => publish(first + n)))
    count += size
    await published(count)
  }
}
