import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { RequestDetail, RequestSummary } from '#heddle'
import { makeRequestId } from '../../../src/primary/http/request-id.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { post } from '../../support/system-domain.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [SHIPPED, fileURLToPath(new URL('./fixtures', import.meta.url))]

interface Part {
  type: string
  kind?: string
  name?: string
  attempt?: number
  error?: { message: string; stack: string }
  calls?: { tool: string; method: string; parent: number; ms: number | null; statement?: string; message?: string }[]
  line?: string
  isGivenUp?: boolean
}

const list = async (service: Heddle, query: string): Promise<RequestSummary[]> =>
  (await service.json(`/system/requests?${query}`)).body as RequestSummary[]
const one = async (service: Heddle, id: string): Promise<RequestDetail> =>
  (await service.json(`/system/requests/${id}`)).body as RequestDetail
const partsOf = ({ parts }: RequestDetail): Part[] => parts as unknown as Part[]

/** Waits until what was asked for is there: the history is written a moment later. */
async function kept<T>(ask: () => Promise<T>, isThere: (answer: T) => boolean): Promise<T> {
  let answer!: T
  await until(async () => {
    answer = await ask()
    return isThere(answer)
  }, 'it is kept')
  return answer
}

test('every request and job is kept with its tool calls, statements, logs, events and failures, and survives kill -9', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-history-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const env = {
    HISTORY_ENABLED: 'true',
    HISTORY_PATH: join(folder, 'history.db'),
    LANE_STALL_MS: '2000',
    REPLICA_ID: 'shop',
  }
  const service = await startHeddle(t, { domains: DOMAINS, lanes: 1, env })

  await post(service, '/orders', { item: 'loom', quantity: 13 })
  await service.fetch('/orders/broken')
  await service.fetch('/orders/count')
  assert.equal((await service.fetch('/orders/loop')).status, 504)
  const failed = await kept(
    () => list(service, 'status=failed&route=/orders'),
    (rows) => rows.length === 3,
  )

  const [loop, broken, order] = failed
  assert.deepEqual([order!.status, order!.method, order!.plugin], [201, 'POST', 'shop.PlaceOrder'])
  assert.equal(order!.error, 'shop.ChargeCard.charge: Card issuer refused: insufficient funds (code 51)')
  const parts = await kept(
    async () => partsOf(await one(service, order!.id)),
    (found) => found.some(({ isGivenUp }) => isGivenUp === true),
  )
  const [placed] = parts.filter(({ kind }) => kind === 'request')
  assert.deepEqual(
    placed!.calls!.map(({ tool, method, parent, statement, message }) => [tool, method, parent, statement ?? message]),
    [
      ['logger', 'info', -1, 'An order has come'],
      ['db', 'transaction', -1, undefined],
      ['db', 'execute', 1, 'INSERT INTO orders (id, item, quantity) VALUES ($1, $2, $3)'],
      ['db', 'publish', 1, undefined],
    ],
  )
  for (const { ms } of placed!.calls!) assert.ok(ms !== null && ms >= 0)
  const attempts = parts.filter(({ kind }) => kind === 'event')
  assert.deepEqual(
    attempts.map(({ name, attempt, calls }) => [name, attempt, calls![0]!.message]),
    [1, 2, 3].map((attempt) => ['shop.ChargeCard.charge', attempt, 'The card issuer did not answer']),
  )
  assert.match(attempts[2]!.error!.stack, /charge-card\.ts:15:11/)

  const [failedCall] = partsOf(await one(service, broken!.id))
  assert.match(failedCall!.error!.message, /no such column: missing/)
  assert.match(failedCall!.calls![0]!.statement!, /SELECT missing/)

  assert.match(loop!.error!, /^Lane 0 died: .*place-order\.ts:35:/)
  assert.match(partsOf(await one(service, loop!.id)).find(({ type }) => type === 'death')!.line!, /place-order\.ts:35:/)

  const [job] = await kept(
    () => list(service, 'plugin=TidyOrders'),
    (rows) => rows.length > 0,
  )
  assert.deepEqual([job!.kind, job!.route, job!.plugin, job!.failed], ['job', 'tidy', 'shop.TidyOrders', false])
  const noted = await kept(
    async () => partsOf(await one(service, job!.id)),
    (found) => found.some(({ name }) => name === 'shop.TidyOrders.note'),
  )
  assert.equal(
    noted.find(({ name }) => name === 'shop.TidyOrders.note')!.calls![0]!.statement,
    'SELECT count(*) FROM orders',
  )

  assert.deepEqual(
    (await list(service, 'text=SELECT missing')).map(({ id }) => id),
    [broken!.id],
  )
  assert.deepEqual(
    (await list(service, 'status=201')).map(({ id }) => id),
    [order!.id],
  )
  assert.equal((await service.fetch('/system/requests/req_unknown')).status, 404)

  void service.fetch('/orders/slow?ms=60000').catch(() => {})
  await kept(
    () => list(service, 'status=open'),
    (rows) => rows.length === 1,
  )
  await service.stop('SIGKILL')
  const next = await startHeddle(t, { domains: DOMAINS, lanes: 1, env })
  const cut = await kept(
    () => list(next, 'status=unfinished'),
    (rows) => rows.length === 1,
  )
  assert.equal(cut[0]!.route, '/orders/slow')
  assert.equal(cut[0]!.state, 'unfinished')
  assert.ok((await one(next, order!.id)).parts.length >= parts.length)
})

test('an id that a client has chosen is searched, and never takes the place of another request', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-history-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const env = { HISTORY_ENABLED: 'true', HISTORY_PATH: join(folder, 'history.db'), LANE_STALL_MS: '2000' }
  const service = await startHeddle(t, { domains: DOMAINS, lanes: 1, env })
  const broken = await service.fetch('/orders/broken')
  const id = broken.headers.get('x-request-id')!
  await service.fetch('/orders/broken', { headers: { 'x-request-id': 'chosen' } })
  await kept(
    () => list(service, 'status=failed&route=/orders'),
    (rows) => rows.length === 2,
  )

  // A stranger sends both of them.
  for (const stolen of [id, 'chosen']) {
    const again = await service.fetch('/orders/count', { headers: { 'x-request-id': stolen } })
    assert.equal(again.headers.get('x-request-id'), stolen, 'the answer has what was sent')
  }
  const rows = await kept(
    () => list(service, 'route=/orders'),
    (found) => found.length === 4,
  )
  assert.deepEqual(
    rows.map(({ path, status, client_id }) => [path, status, client_id]),
    [
      ['/orders/count', 200, 'chosen'],
      ['/orders/count', 200, id],
      ['/orders/broken', 500, 'chosen'],
      ['/orders/broken', 500, null],
    ],
  )
  assert.equal(new Set(rows.map((row) => row.id)).size, 4)
  assert.deepEqual(
    rows.map((row) => row.id.slice(0, 4)),
    ['req_', 'req_', 'req_', 'req_'],
  )
  const detail = await one(service, id)
  assert.deepEqual([detail.path, detail.status, partsOf(detail).length], ['/orders/broken', 500, 1])
  assert.equal((await one(service, 'chosen')).path, '/orders/count', 'the last one that has it')
  const found = await list(service, 'text=chosen')
  assert.deepEqual(
    found.map(({ path }) => path),
    ['/orders/count', '/orders/broken'],
  )

  // What it caused is found by what it has published, and a death by the runtime’s key.
  const headers = { 'content-type': 'application/json', 'x-request-id': 'chosen' }
  await service.fetch('/orders', { method: 'POST', headers, body: JSON.stringify({ item: 'loom', quantity: 13 }) })
  await service.fetch('/orders/loop', { headers: { 'x-request-id': 'chosen' } })
  const failed = await kept(
    () => list(service, 'status=failed&route=/orders'),
    (all) => all.length === 4 && all.every(({ error }) => error !== null),
  )
  const [loop, order] = failed
  assert.deepEqual([loop!.path, order!.path], ['/orders/loop', '/orders'])
  assert.match(order!.error!, /^shop\.ChargeCard\.charge: Card issuer refused/)
  for (const [id, isIt] of [
    [order!.id, ({ isGivenUp }: Part) => isGivenUp === true],
    [loop!.id, ({ type }: Part) => type === 'death'],
  ] as const)
    await kept(
      async () => partsOf(await one(service, id)),
      (parts) => parts.some(isIt),
    )
})

test('ids that the runtime makes cannot be foretold', () => {
  const ids = Array.from({ length: 2000 }, makeRequestId)
  assert.equal(new Set(ids).size, 2000)
  for (const id of ids) assert.match(id, /^req_[\w-]{16}$/)
  // No beginning is common to two of them.
  assert.ok(new Set(ids.map((id) => id.slice(4, 12))).size > 1990)
})
