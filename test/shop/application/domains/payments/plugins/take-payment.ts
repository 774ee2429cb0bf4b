import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { HttpError, plugin } from 'heddle'
import { z } from 'zod'

/** A delivery that is older may be one that somebody has recorded. */
const TOLERANCE_SEC = 300
const payment = z.object({ id: z.string().min(1), order: z.string().min(1) })

/** `POST /webhooks/payments`: the payment provider says that an order is paid */
export default plugin(({ config, event_bus, http }) => {
  const secret = config.get('PAYMENT_WEBHOOK_SECRET', { default: randomBytes(32).toString('hex') })

  http.post(
    '/webhooks/payments',
    { rawBody: true, summary: 'Take a payment', description: 'For the payment provider, which signs it.' },
    async (_data, { headers, rawBody }) => {
      const [, time = '', signature = ''] =
        /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(headers['payment-signature'] ?? '') ?? []
      const expected = createHmac('sha256', secret).update(`${time}.`).update(rawBody).digest()
      const given = Buffer.from(signature, 'hex')
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
        throw new HttpError(400, 'The signature is not valid')
      }
      if (Math.abs(Date.now() / 1000 - Number(time)) > TOLERANCE_SEC) throw new HttpError(400, 'It is too old')
      const { id, order } = payment.parse(JSON.parse(rawBody.toString()))
      await event_bus.publish('payment.received', { payment_id: id, order_id: order }, { key: order })
      return { success: true }
    },
  )
})
