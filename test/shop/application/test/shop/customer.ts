import { createHmac } from 'node:crypto'
import type { BootedApp } from 'heddle/testing'

export const ADMIN = 'owner@shop.example'
export const PAYMENT_SECRET = 'a secret of the payment provider'
export const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(200, 7)])

/** Registers. @returns the token */
export async function enter(app: BootedApp, email: string): Promise<string> {
  return (await app.post('/accounts', { email, password: 'correct horse' })).body.data.token
}

export async function addProduct(app: BootedApp, token: string, name: string, price_cents: number, available: number) {
  return (await app.post('/products', { name, price_cents, available }, { token })).body.data.id as string
}

/** The payment provider's request. @param sentSec when it says that it was signed */
export function pay(
  app: BootedApp,
  order: string,
  payment: string,
  secret = PAYMENT_SECRET,
  sentSec = Date.now() / 1000,
) {
  // The blanks are signed, too: what was parsed and written again has another signature.
  const body = `{ "id": "${payment}",  "order": "${order}" }`
  const time = Math.floor(sentSec)
  const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')
  return app.post('/webhooks/payments', body, {
    headers: { 'content-type': 'application/json', 'payment-signature': `t=${time},v1=${signature}` },
  })
}

/** The server-sent events of a path, one after another. */
export async function* follow(app: BootedApp, path: string, token: string, signal: AbortSignal) {
  const response = await app.fetch(path, { headers: { authorization: `Bearer ${token}` }, signal })
  let text = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    const frames = text.split('\n\n')
    text = frames.pop()!
    for (const frame of frames) if (frame.startsWith('data: ')) yield JSON.parse(frame.slice('data: '.length))
  }
}
