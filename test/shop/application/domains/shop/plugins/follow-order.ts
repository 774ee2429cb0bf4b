import { type Events, plugin, type SseStream, type ToolsIn } from 'heddle'
import type shop from '../domain.ts'
import { customers } from '../roles.ts'
import { shopTables } from '../tables.ts'

/** `GET /orders/:id/live`: the status of one's own order, now and whenever it changes */
export default plugin(({ auth, db, event_bus, http }: ToolsIn<typeof shop>) => {
  /** The streams of this lane, by order. */
  const followers = new Map<string, Set<SseStream>>()
  const tables = shopTables(db)

  http.addStream(
    '/orders/:id/live',
    async ({ id }, stream, { user }) => {
      const own = followers.get(id) ?? new Set()
      followers.set(id, own.add(stream))
      stream.signal.addEventListener('abort', () => {
        own.delete(stream)
        if (own.size === 0) followers.delete(id)
      })
      // Read after it is among the followers: no change falls between the two.
      const order = await tables
        .selectFrom('orders')
        .select('status')
        .where('id', '=', id)
        .where('customer_id', '=', user.id)
        .executeTakeFirst()
      // Its head is sent already: a stranger gets a stream without a word.
      if (order === undefined) return stream.close()
      stream.send({ status: order.status })
    },
    {
      authValidator: auth.validateToken,
      guards: [customers],
      summary: 'The state of an order',
      description: 'As it is now, and when it is paid.',
    },
  )
  // Every lane of every process has streams.
  event_bus.subscribe('order.paid', tell, { broadcast: true })

  function tell({ id }: Events['order.paid']) {
    for (const stream of followers.get(id) ?? []) stream.send({ status: 'paid' })
  }
})
