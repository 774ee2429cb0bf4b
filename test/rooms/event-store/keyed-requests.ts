import assert from 'node:assert/strict'
import type { Heddle } from '../../support/heddle.ts'

export interface Answer {
  status: number
  headers: Record<string, string>
  body: string
}

export interface Sent {
  key?: string
  path?: string
  method?: string
  token?: string
}

export async function send(heddle: Heddle, body: object, { key, path = '/orders', method = 'POST', token }: Sent) {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (key !== undefined) headers['idempotency-key'] = key
  if (token !== undefined) headers.authorization = `Bearer ${token}`
  const response = await heddle.fetch(path, { method, headers, body: JSON.stringify(body) })
  const answer: Answer = {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: Buffer.from(await response.arrayBuffer()).toString('latin1'),
  }
  return answer
}

/** What a client may rely on to be the same. */
export function lasting({ status, headers, body }: Answer) {
  const { date, 'x-request-id': id, 'idempotency-replayed': replayed, ...same } = headers
  return { status, headers: same, body }
}

export function isReplay(again: Answer, first: Answer): void {
  assert.equal(again.headers['idempotency-replayed'], 'true')
  assert.deepEqual(lasting(again), lasting(first))
}

export interface Done {
  orders: { id: string; item: string }[]
  runs: number
  refused: number
}

export const ordersOf = async (heddle: Heddle): Promise<Done> => (await heddle.json('/orders')).body

/** @returns tells what has come since now */
export async function doneSince(heddle: Heddle): Promise<() => Promise<Done>> {
  const before = await ordersOf(heddle)
  const known = new Set(before.orders.map(({ id }) => id))
  return async () => {
    const { orders, runs, refused } = await ordersOf(heddle)
    return {
      orders: orders.filter(({ id }) => !known.has(id)),
      runs: runs - before.runs,
      refused: refused - before.refused,
    }
  }
}
