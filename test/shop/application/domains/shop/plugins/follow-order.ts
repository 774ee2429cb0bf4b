import { type Data, type Events, Plugin, type SseStream, type ToolsIn } from 'heddle'
import type shop from '../domain.ts'
import { customers, type ForUser } from '../roles.ts'
import { shopTables } from '../tables.ts'

/** `GET /orders/:id/live`: the status of one's own order, now and whenever it changes */
export default class FollowOrder extends Plugin {
  #auth
  #bus
  #http
  #tables
  /** The streams of this lane, by order. */
  readonly #followers = new Map<string, Set<SseStream>>()

  constructor({ auth, db, event_bus, http }: ToolsIn<typeof shop>) {
    super()
    this.#auth = auth
    this.#bus = event_bus
    this.#http = http
    this.#tables = shopTables(db)
  }

  override onBoot() {
    this.#http.addStream('/orders/:id/live', this.follow, {
      authValidator: this.#auth.validateToken,
      guards: [customers],
    })
    // Every lane of every process has streams.
    this.#bus.subscribe('order.paid', this.tell, { broadcast: true })
  }

  async follow({ id }: Data, stream: SseStream, { user }: ForUser) {
    const followers = this.#followers.get(id) ?? new Set()
    this.#followers.set(id, followers.add(stream))
    stream.signal.addEventListener('abort', () => {
      followers.delete(stream)
      if (followers.size === 0) this.#followers.delete(id)
    })
    // Read after it is among the followers: no change falls between the two.
    const order = await this.#tables
      .selectFrom('orders')
      .select('status')
      .where('id', '=', id)
      .where('customer_id', '=', user.id)
      .executeTakeFirst()
    // Its head is sent already: a stranger gets a stream without a word.
    if (order === undefined) return stream.close()
    stream.send({ status: order.status })
  }

  tell({ id }: Events['order.paid']) {
    for (const stream of this.#followers.get(id) ?? []) stream.send({ status: 'paid' })
  }
}
