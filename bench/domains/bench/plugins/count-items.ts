import { plugin } from '#heddle'

const NAMESPACE = 'bench-items'
const REPORT_DELAY_MS = 20

/** The only subscriber of `bench.item_created`. It counts in its thread and writes the count to the shared state now and then. */
export default plugin(({ event_bus, http, state }) => {
  let unreported = 0
  let report: NodeJS.Timeout | undefined

  event_bus.subscribe('bench.item_created', ({ id }) => {
    if ((id as number) > 0) unreported++
    report ??= setTimeout(() => {
      void state.increment('handled', unreported, { namespace: NAMESPACE })
      unreported = 0
      report = undefined
    }, REPORT_DELAY_MS)
  })
  http.get('/bench/items/handled', async () => {
    return { success: true, data: { handled: (await state.get('handled', { namespace: NAMESPACE })) ?? 0 } }
  })
  return { onStop: () => clearTimeout(report) }
})
