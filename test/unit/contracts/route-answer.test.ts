import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { z } from 'zod'
import type { Data, Http, HttpContext } from '#heddle'

/** The compiler is the judge: a line marked `@ts-expect-error` that has none fails `npm run check:types`. */
const paths: string[] = []
const http: Pick<Http, 'addEndpoint'> = { addEndpoint: (path) => void paths.push(path) }

const line = z.object({ item: z.string(), note: z.string().optional(), price: z.number().nullable() })
const response = z.object({
  success: z.literal(true),
  data: z.object({ id: z.string(), at: z.string(), lines: z.array(line), state: z.enum(['open', 'shipped']) }),
})
const order = { id: 'o1', at: new Date(0), lines: [{ item: 'loom', price: null }], state: 'open' as const }

class Orders {
  // TypeScript infers `success: boolean` and `state: string` here.
  async show(_data: Data, context: HttpContext) {
    if (context.path === '/none') return { success: false, error: 'None' }
    if (context.path === '/old') return context.redirect('/new')
    return { success: true, data: { ...order, state: 'open', more: 1 } }
  }

  async forget() {
    await this.show({}, {} as HttpContext)
  }

  async *stream() {
    yield 'a'
  }

  bare() {
    return order
  }
}

test('what a handler returns is checked against the response schema by the compiler', () => {
  const orders = new Orders()
  http.addEndpoint('/a', 'GET', orders.show, { response })
  http.addEndpoint('/b', 'GET', () => ({ success: true as const, data: order }), { response })
  http.addEndpoint('/c', 'GET', () => ({ success: false, error: 'No', code: 'NO' }), { response })
  http.addEndpoint('/d', 'GET', (_data, context) => context.sendBinary(new Uint8Array(1), 'image/png'), { response })
  http.addEndpoint('/d1', 'GET', orders.stream, { response })
  http.addEndpoint('/d2', 'GET', async () => Readable.from(['a']), { response })
  http.addEndpoint('/d3', 'GET', () => new Blob(['a']).stream(), { response })
  // @ts-expect-error without the envelope of the schema
  http.addEndpoint('/e', 'GET', orders.bare, { response })
  // @ts-expect-error nothing is returned
  http.addEndpoint('/f', 'GET', orders.forget, { response })
  // @ts-expect-error a price is a number
  http.addEndpoint('/g', 'GET', () => ({ success: true, data: { ...order, lines: [{ item: 'a', price: '1' }] } }), {
    response,
  })
  // @ts-expect-error the id is missing, also in a promise
  http.addEndpoint('/h', 'GET', async () => ({ success: true, data: { ...order, id: undefined } }), { response })
  // @ts-expect-error JSON has no Map
  http.addEndpoint('/i', 'GET', () => ({ success: true, data: { ...order, lines: new Map() } }), { response })
  // Without a schema anything goes.
  http.addEndpoint('/j', 'GET', orders.forget)
  http.addEndpoint('/k', 'GET', () => 17, { response: z.any() })
  assert.equal(paths.length, 14)
})
