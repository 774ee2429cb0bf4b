import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { type BootedApp, boot } from 'heddle/testing'
import { ADMIN, addProduct, enter, follow, PAYMENT_SECRET, PNG, pay } from './customer.ts'
import { mailProvider } from './mail-provider.ts'

const MAIL_FAILURES = 2
/** Where the tests run on other databases than the embedded ones. */
const SERVERS = Object.fromEntries(
  ['DATABASE_URL', 'REDIS_URL'].flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
)

describe('the shop', () => {
  let app: BootedApp
  let mail: Awaited<ReturnType<typeof mailProvider>>
  let admin: string
  let customer: string

  before(async () => {
    mail = await mailProvider(MAIL_FAILURES)
    const env = { SHOP_ADMIN_EMAIL: ADMIN, PAYMENT_WEBHOOK_SECRET: PAYMENT_SECRET, MAIL_URL: mail.url, ...SERVERS }
    app = await boot({ env, lanes: 2 })
    ;[admin, customer] = await Promise.all([enter(app, ADMIN), enter(app, 'ada@example.com')])
  })
  after(async () => {
    await app?.stop()
    mail?.close()
  })

  test('who has an account logs in, and who guesses passwords has to wait', async () => {
    const logIn = (email: string, password: string) => app.post('/login', { email, password })
    const { token } = (await logIn('Ada@example.com', 'correct horse')).body.data
    assert.equal((await app.get('/cart', { token })).status, 200)
    assert.equal((await logIn('ada@example.com', 'wrong horse')).status, 401)
    const statuses: number[] = []
    for (let n = 0; n < 6; n++) statuses.push((await logIn('tony@example.com', `guess number ${n}`)).status)
    assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429])
  })

  test('only admins add products, and everybody finds them', async () => {
    const product = { name: 'Loom', price_cents: 49_900, available: 2 }
    assert.equal((await app.post('/products', product)).status, 401)
    const refused = await app.post('/products', product, { token: customer })
    assert.equal(refused.status, 403)
    assert.deepEqual(refused.body, { success: false, error: 'Admins only', code: 'ADMINS_ONLY' })
    assert.equal((await app.post('/products', product, { token: admin })).status, 201)
    await addProduct(app, admin, 'Table loom', 19_900, 1)
    const names = async (query: string) =>
      (await app.get(`/products?${query}`)).body.data.map(({ name }: { name: string }) => name)
    assert.deepEqual(await names('search=loom'), ['Loom', 'Table loom'])
    assert.deepEqual(await names('search=loom&max_cents=20000'), ['Table loom'])
    assert.deepEqual(await names("search=%25';--"), [])

    const first = (await app.get('/products?search=loom&limit=1')).body
    const second = (await app.get(`/products?search=loom&limit=1&after=${first.next}`)).body
    assert.deepEqual([first.data[0].name, second.data[0].name, second.next], ['Loom', 'Table loom', null])
    assert.equal((await app.get('/products?after=nonsense')).status, 400)
  })

  test('an image is kept, and what is none is refused', async () => {
    const id = await addProduct(app, admin, 'Shuttle', 900, 5)
    const upload = (bytes: Buffer, product = id) => {
      const body = new FormData()
      body.append('image', new Blob([new Uint8Array(bytes)], { type: 'image/png' }), '../../shuttle.png')
      return app.request('POST', `/products/${product}/image`, { body, token: admin })
    }
    assert.equal((await app.get(`/products/${id}/image`)).status, 404)
    assert.equal((await upload(Buffer.from('<script>'))).status, 415)
    assert.equal((await upload(PNG, 'none')).status, 404)
    assert.equal((await upload(Buffer.concat([PNG, Buffer.alloc(2_000_000)]))).status, 413)
    assert.deepEqual((await upload(PNG)).body, { success: true, data: { type: 'image/png', bytes: PNG.byteLength } })
    const image = await app.get(`/products/${id}/image`)
    assert.equal(image.headers.get('content-type'), 'image/png')
    assert.deepEqual(image.body, PNG)
    const headers = { 'if-none-match': image.headers.get('etag')! }
    assert.equal((await app.fetch(`/products/${id}/image`, { headers })).status, 304)
  })

  test('an order takes the cart, the stock and the event along, once for each key', async () => {
    const id = await addProduct(app, admin, 'Heddle', 250, 10)
    const token = await enter(app, 'grace@example.com')
    assert.equal((await app.post('/orders', undefined, { token })).body.code, 'EMPTY')
    const cart = await app.request('PUT', `/cart/${id}`, { body: { quantity: 4 }, token })
    assert.equal(cart.headers.get('cache-control'), 'no-store')
    assert.deepEqual(cart.body.data, [{ product_id: id, name: 'Heddle', quantity: 4, price_cents: 250 }])
    assert.equal((await app.request('PUT', '/cart/none', { body: { quantity: 1 }, token })).status, 404)

    const headers = { 'idempotency-key': randomUUID() }
    const placed = await app.post('/orders', undefined, { token, headers })
    assert.equal(placed.status, 201, JSON.stringify(placed.body))
    assert.equal(placed.body.data.total_cents, 1000)
    const again = await app.post('/orders', undefined, { token, headers })
    assert.equal(again.headers.get('idempotency-replayed'), 'true')
    assert.deepEqual(again.body, placed.body)
    await app.event('order.placed')
    const { available } = (await app.get('/products?search=heddle')).body.data[0]
    assert.equal(available, 6)
    assert.deepEqual((await app.get('/cart', { token })).body.data, [])
  })

  test('of many who want the last ones nobody gets more than there are, and who gets none keeps the cart', async () => {
    const id = await addProduct(app, admin, 'Rarity', 100, 2)
    const tokens = await Promise.all([1, 2, 3].map((n) => enter(app, `buyer-${n}@example.com`)))
    await Promise.all(tokens.map((token) => app.request('PUT', `/cart/${id}`, { body: { quantity: 1 }, token })))
    const answers = await Promise.all(tokens.map((token) => app.post('/orders', undefined, { token })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 201, 409])
    const refused = answers.findIndex(({ status }) => status === 409)
    assert.equal(answers[refused]!.body.code, 'SOLD_OUT')
    assert.equal((await app.get('/cart', { token: tokens[refused]! })).body.data.length, 1)
    assert.equal((await app.get('/products?search=rarity')).body.data[0].available, 0)
  })

  test('a signed payment settles the order once, its stream says so, and the receipt goes out after failures', async () => {
    const id = await addProduct(app, admin, 'Reed', 1500, 1)
    const token = await enter(app, 'edsger@example.com')
    await app.request('PUT', `/cart/${id}`, { body: { quantity: 1 }, token })
    const order = (await app.post('/orders', undefined, { token })).body.data.id as string

    assert.equal((await app.get(`/orders/${order}/live`)).status, 401)
    assert.doesNotMatch((await app.get(`/orders/${order}/live`, { token: customer })).body, /data:/)
    const leaving = new AbortController()
    const statuses = follow(app, `/orders/${order}/live`, token, leaving.signal)
    assert.deepEqual((await statuses.next()).value, { status: 'placed' })

    assert.equal((await pay(app, order, 'pay-1', 'another secret')).status, 400)
    assert.equal((await pay(app, order, 'pay-1', PAYMENT_SECRET, Date.now() / 1000 - 3600)).body.error, 'It is too old')
    assert.equal((await pay(app, order, 'pay-1')).status, 200)
    assert.equal((await pay(app, order, 'pay-1')).status, 200)
    assert.deepEqual((await statuses.next()).value, { status: 'paid' })
    leaving.abort()

    await app.event('mail.sent')
    await app.idle()
    assert.equal(app.events('order.paid').length, 1)
    assert.deepEqual(
      mail.sent.map(({ text }) => text),
      ['Thank you: 15 are paid.'],
    )
    assert.deepEqual(await app.deadLetters(), [])
    const [paid] = app.events('order.paid')
    assert.equal(
      app.events('payment.received').find((event) => event.id === paid!.parent_id)?.event,
      'payment.received',
    )
  })
})
