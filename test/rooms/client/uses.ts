// What programs do with the client of the shop. It is compiled and run where that client has been written beside it: `service.test.ts`.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { ApiError, Client, type ClientOptions, type Events, Unreachable } from './client.ts'

/** The first argument is of the type of the second. */
function typed<T>(value: T): T {
  return value
}

/** Each is asked with a client of the service. */
export const USES: Record<string, (client: Client, options: ClientOptions) => Promise<void>> = {
  'creates a user, logs in, and sends the token': async (client, options) => {
    const user = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }
    const created = await client.postUsers({ body: user })
    assert.equal(typed<string>(created.data.email), 'ada@example.com')
    const { data } = await client.postLogin({ body: user })
    const me = new Client({ ...options, token: data.token })
    assert.equal((await me.getUsersMe()).data.id, created.data.id)

    const taken = await client.postUsers({ body: user }).result()
    assert.ok(!taken.ok && taken.status === 409)
    assert.equal(taken.message, 'This e-mail is taken')
    const stranger = await client.getUsersMe().result()
    assert.ok(!stranger.ok)
    assert.equal(stranger.status, 401)
  },

  'tells faults of the input with their places, and which key it sent': async (client) => {
    const misfit = await client.postOrders({ body: { item: '', quantity: 10 } }).result()
    assert.ok(!misfit.ok && misfit.status === 422 && misfit.details !== undefined)
    assert.deepEqual(typed<string[]>(misfit.details.map(({ path }) => path)), ['item', 'quantity'])
    const { data } = await client.postOrders({ body: { item: 'tea', quantity: 2 } }, { idempotencyKey: 'mine' })
    assert.deepEqual([data.tags, data.total.amount], [['mine'], 200])
    const made = await client.postOrders({ body: { item: 'tea', quantity: 2 } }).result()
    assert.ok(made.ok)
    assert.equal(made.status, 201)
    assert.match(made.answer.data.tags[0]!, /^[0-9a-f]{32}$/)
  },

  'knows the codes and details that a route throws': async (client) => {
    const result = await client.postOrders({ body: { item: 'gone', quantity: 1 } }).result()
    if (result.ok || result.status !== 409 || result.code === undefined) return assert.fail('It is sold out')
    assert.equal(typed<'SOLD_OUT' | 'CLOSED'>(result.code), 'SOLD_OUT')
    assert.equal(typed<number>(result.details.available), 0)
    // @ts-expect-error the route does not throw this code
    assert.ok(result.code !== 'SHIPPED')

    await assert.rejects(
      async () => client.getOrdersById({ params: { id: '8e03978e-40d5-43e8-bc93-6894a57f9324' } }),
      (error) =>
        error instanceof ApiError && error.status === 404 && error.code === 'NO_ORDER' && error.requestId !== null,
    )
  },

  'sends queries, paths, files and bytes as the handlers read them': async (client) => {
    const listed = await client.getOrders({ query: { tags: ['a', 'b'], limit: 5 } })
    assert.deepEqual(listed, { tags: ['a', 'b'], limit: 5 })
    const files = {
      image: { name: 'a.txt', content: 'AB', type: 'text/plain' },
      more: [new Blob(['C']), new Blob(['D'])],
    }
    const uploaded = await client.postImages<{ title: string; files: { text: string; filename: string }[] }>({
      body: { title: 'Größe' },
      files,
    })
    assert.equal(uploaded.title, 'Größe')
    assert.deepEqual(
      uploaded.files.map(({ text }) => text),
      ['AB', 'C', 'D'],
    )
    const film = { name: 'f.mp4', content: new Uint8Array([65]) }
    const { parts } = await client.postFilms<{ parts: string[] }>({ body: { title: 'x' }, files: { film } })
    assert.deepEqual(parts, ['title', null, 'x', 'film', 'f.mp4', 'A'])
    const bytes = new Uint8Array([0, 255, 1])
    const put = { path: 'a b/ü.bin', type: 'image/png', bytes: 3, sha1: createHash('sha1').update(bytes).digest('hex') }
    assert.deepEqual(
      await client.putBlobsRest({ params: { '*': 'a b/ü.bin' }, body: bytes, contentType: 'image/png' }),
      put,
    )
    const chunks = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes)
        controller.close()
      },
    })
    const streamed = await client.putBlobsRest<{ sha1: string }>({ params: { '*': 'x' }, body: chunks })
    assert.equal(streamed.sha1, put.sha1)
    const response = await client.getBlobsRest({ params: { '*': 'x/y' } }).response()
    assert.equal(await response.text(), 'the bytes of x/y')
  },

  'reads server-sent events until the service or the loop ends them': async (client) => {
    const all: unknown[] = []
    for await (const frame of client.getTicks({ query: { to: 3 } })) all.push(frame)
    assert.deepEqual(
      all,
      [1, 2, 3].map((tick) => ({ tick, text: 'a\nb' })),
    )
    for await (const { tick } of client.getTicks<{ tick: number }>({ query: { to: 1000 } })) if (tick === 2) break
  },

  'speaks over a WebSocket': async (_, options) => {
    const talking = new Client(options)
    const channel = await talking.getEchoByRoom<object | string, object | string>({ params: { room: 'tea' } })
    channel.send({ a: 1 })
    channel.send('hi')
    channel.send('bye')
    const heard: unknown[] = []
    for await (const message of channel) heard.push(message)
    assert.deepEqual(heard, [{ room: 'tea' }, { a: 1 }, 'hi'])
    assert.deepEqual(await channel.closed, { code: 4001, reason: 'bye' })
  },

  'renews a token that is refused': async (_, options) => {
    const asked: boolean[] = []
    const token = (isRefused: boolean) => {
      asked.push(isRefused)
      return isRefused ? 'fresh' : 'stale'
    }
    assert.deepEqual(await new Client({ ...options, token }).getSecret(), { secret: 42 })
    assert.deepEqual(asked, [false, true])
  },

  'has the types of events': async () => {
    const sent: Events['parcel.sent'] = { id: '1', to: { city: 'Ulm' }, kind: 'letter', at: new Date(0).toISOString() }
    // @ts-expect-error there is no such kind
    const wrong: Events['parcel.sent'] = { ...sent, kind: 'rocket' }
    assert.notDeepEqual(sent, wrong)
  },
}

export async function isGone(client: Client): Promise<void> {
  const gone = await client.getUsersMe({}, { retries: 0 }).result()
  assert.ok(!gone.ok && gone instanceof Unreachable)
  assert.equal(gone.code, 'UNREACHABLE')
}

export { Client }
