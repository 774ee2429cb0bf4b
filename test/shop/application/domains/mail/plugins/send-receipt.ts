import { type EventMeta, type Events, Plugin, type Tools } from 'heddle'

/** A paid order gets a receipt by the mail provider, which may be away for a while. Without a provider it is logged. */
export default class SendReceipt extends Plugin {
  #bus
  #db
  #log
  #url

  constructor({ config, db, event_bus, logger }: Tools) {
    super()
    this.#bus = event_bus
    this.#db = db
    this.#log = logger
    this.#url = config.get('MAIL_URL', { default: '' })
  }

  override onBoot() {
    this.#bus.subscribe('order.paid', this.send, { retries: 8, backoffMs: 50, timeoutMs: 10_000 })
  }

  async send({ id, customer_id, total_cents }: Events['order.paid'], { attempt }: EventMeta) {
    // Delivery is at least once: a receipt that is known to be sent is not sent again.
    if ((await this.#db.queryOne('SELECT order_id FROM mails WHERE order_id = $1', [id])) !== null) return
    await this.#deliver(id, { to: customer_id, text: `Thank you: ${total_cents / 100} are paid.` })
    await this.#db.transaction(async (tx) => {
      await tx.execute('INSERT INTO mails (order_id, attempts, sent_at) VALUES ($1, $2, $3)', [id, attempt, new Date()])
      await tx.publish('mail.sent', { order_id: id, attempts: attempt })
    })
  }

  async #deliver(id: string, mail: { to: string; text: string }) {
    if (this.#url === '') return this.#log.info('A receipt would be sent', mail)
    const answer = await fetch(this.#url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': id },
      body: JSON.stringify(mail),
      signal: AbortSignal.timeout(5000),
    })
    if (!answer.ok) throw new Error(`The mail provider answered ${answer.status}`)
  }
}
