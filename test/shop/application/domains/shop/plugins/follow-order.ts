import { type Data, type Events, Plugin, type SseStream, type Tools } from 'heddle'

/** `GET /orders/:id/live`: the status of one's own order, now and whenever it changes */
export default class FollowOrder extends Plugin {
  #auth
  #bus
  #db
  #http
  /** The streams of this lane, by order. */
  readonly #followers = new Map<string, Set<SseStream>>()

  constructor({ auth, db, event_bus, http }: Tools) {
    super()
    this.#auth = auth
    this.#bus = event_bus
    this.#db = db
    this.#http = http
  }

  override onBoot() {
    this.#http.addStream('/orders/:id/live', this.follow, { authValidator: this.#auth.validateToken })
    // Every lane of every process has streams.
    this.#bus.subscribe('order.paid', this.tell, { broadcast: true })
  }

  async follow({ id, _auth }: Data, stream: SseStream) {
    const followers = this.#followers.get(id) ?? new Set()
    this.#followers.set(id, followers.add(stream))
    stream.signal.addEventListener('abort', () => {
      followers.delete(stream)
      if (followers.size === 0) this.#followers.delete(id)
    })
    // Read after it is among the followers: no change falls between the two.
    const order = await this.#db.queryOne<{ status: string }>(
      'SELECT status FROM orders WHERE id = $1 AND customer_id = $2',
      [id, _auth.sub],
    )
    // Its head is sent already: a stranger gets a stream without a word.
    if (order === null) return stream.close()
    stream.send({ status: order.status })
  }

  tell({ id }: Events['order.paid']) {
    for (const stream of this.#followers.get(id) ?? []) stream.send({ status: 'paid' })
  }
}
