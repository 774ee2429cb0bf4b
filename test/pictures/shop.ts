import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type Heddle, type Owner, startHeddle } from '../support/heddle.ts'
import { until } from '../support/until.ts'

const DOMAINS = fileURLToPath(new URL('../shop/application/domains', import.meta.url))
const OWNER = 'owner@shop.example'
const PAYMENT_SECRET = 'known-to-the-payment-provider'
const PASSWORD = 'correct horse'
/** What is asked for `/products` before and after the orders. */
const VISITS = 3

/** The shop in development, beside a provider of e-mails. */
export class PicturedShop {
  readonly url: string
  readonly #heddle: Heddle
  readonly #mails: MailProvider

  private constructor(heddle: Heddle, mails: MailProvider) {
    this.url = heddle.url
    this.#heddle = heddle
    this.#mails = mails
  }

  static async open(owner: Owner): Promise<PicturedShop> {
    const mails = await MailProvider.open(owner)
    const env = {
      SYSTEM_DOMAIN: 'true',
      REPLICA_ID: 'shop-1',
      HISTORY_ENABLED: 'true',
      SHOP_ADMIN_EMAIL: OWNER,
      PAYMENT_WEBHOOK_SECRET: PAYMENT_SECRET,
      MAIL_URL: mails.url,
    }
    return new PicturedShop(await startHeddle(owner, { domains: [DOMAINS], lanes: 2, env }), mails)
  }

  /** Sends what a morning brings, failures included. @returns the id of the request whose receipt came with the third attempt */
  async serveCustomers(): Promise<string> {
    const admin = await this.#enter(OWNER)
    const products: string[] = []
    for (const [name, price_cents] of [
      ['Loom', 149_000],
      ['Heddle', 19_900],
      ['Reed', 2500],
    ] as const) {
      const { data } = await this.#ask('POST', '/products', { token: admin, body: { name, price_cents, available: 9 } })
      products.push(data.id)
    }
    await this.#visit()

    const ada = await this.#enter('ada@example.com')
    const dead = await this.#order(ada, products[0]!)
    this.#mails.refusals = Number.POSITIVE_INFINITY
    await this.#pay(dead, 'payment-1')
    await until(async () => (await this.#ask('GET', '/system/dead-letters')).data.length > 0, 'a dead letter')

    await this.#ask('POST', '/orders', { token: ada })
    await this.#ask('PUT', `/cart/${products[1]}`, { token: ada, body: { quantity: 400 } })
    await this.#ask('POST', '/orders', { token: ada })
    await this.#ask('POST', '/login', { body: { email: 'ada@example.com', password: 'something else' } })
    await this.#post('/webhooks/payments', '{"id":"payment-2"}')

    const grace = await this.#enter('grace@example.com')
    const order = await this.#order(grace, products[2]!)
    this.#mails.refusals = 2
    const request = await this.#pay(order, 'payment-3')
    await this.#visit()
    await until(async () => {
      const { data } = await this.#ask('GET', '/system/traces/flat')
      return data.some(({ event }: { event: string }) => event === 'mail.sent')
    }, 'a receipt')
    return request
  }

  async #visit(): Promise<void> {
    for (let n = 0; n < VISITS; n++) await this.#ask('GET', '/products?limit=2')
  }

  async #enter(email: string): Promise<string> {
    return (await this.#ask('POST', '/accounts', { body: { email, password: PASSWORD } })).data.token
  }

  async #order(token: string, product: string): Promise<string> {
    await this.#ask('PUT', `/cart/${product}`, { token, body: { quantity: 1 } })
    return (await this.#ask('POST', '/orders', { token })).data.id
  }

  /** What the payment provider sends. @returns the id of the request */
  async #pay(order: string, payment: string): Promise<string> {
    return await this.#post('/webhooks/payments', JSON.stringify({ id: payment, order }))
  }

  async #post(path: string, body: string): Promise<string> {
    const time = Math.floor(Date.now() / 1000)
    const signature = createHmac('sha256', PAYMENT_SECRET).update(`${time}.${body}`).digest('hex')
    const headers = { 'content-type': 'application/json', 'payment-signature': `t=${time},v1=${signature}` }
    const answer = await this.#heddle.fetch(path, { method: 'POST', headers, body })
    return answer.headers.get('x-request-id') ?? ''
  }

  // biome-ignore lint/suspicious/noExplicitAny: each caller knows what the shop answers
  async #ask(method: string, path: string, { token, body }: { token?: string; body?: object } = {}): Promise<any> {
    const headers = {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
    }
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const answer = (await this.#heddle.json(path, init)).body
    return Array.isArray(answer) ? { data: answer } : answer
  }
}

/** Takes receipts, and refuses as many as it is told to. */
class MailProvider {
  readonly url: string
  refusals = 0

  private constructor(port: number) {
    this.url = `http://127.0.0.1:${port}/`
  }

  static async open(owner: Owner): Promise<MailProvider> {
    const server = createServer((request, response) => {
      request.resume().on('end', () => response.writeHead(provider.refusals-- > 0 ? 503 : 202).end())
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    owner.after(async () => {
      server.close()
      server.closeAllConnections()
    })
    const provider = new MailProvider((server.address() as AddressInfo).port)
    return provider
  }
}
