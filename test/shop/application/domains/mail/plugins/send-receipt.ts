import { type EventMeta, type Events, plugin } from 'heddle'

/** A paid order gets a receipt by the mail provider, which may be away for a while. Without a provider it is logged. */
export default plugin(({ config, db, event_bus, logger }) => {
  const url = config.get('MAIL_URL', { default: '' })

  event_bus.subscribe('order.paid', send, { retries: 8, backoffMs: 50, timeoutMs: 10_000 })

  async function send({ id, customer_id, total_cents }: Events['order.paid'], { attempt }: EventMeta) {
    // Delivery is at least once: a receipt that is known to be sent is not sent again.
    if ((await db.queryOne('SELECT order_id FROM mails WHERE order_id = $1', [id])) !== null) return
    await deliver(id, { to: customer_id, text: `Thank you: ${total_cents / 100} are paid.` })
    await db.transaction(async (tx) => {
      await tx.execute('INSERT INTO mails (order_id, attempts, sent_at) VALUES ($1, $2, $3)', [id, attempt, new Date()])
      await tx.publish('mail.sent', { order_id: id, attempts: attempt })
    })
  }

  async function deliver(id: string, mail: { to: string; text: string }) {
    if (url === '') return logger.info('A receipt would be sent', mail)
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': id },
      body: JSON.stringify(mail),
      signal: AbortSignal.timeout(5000),
    })
    if (!answer.ok) throw new Error(`The mail provider answered ${answer.status}`)
  }
})
