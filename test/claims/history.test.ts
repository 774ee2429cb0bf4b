import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { DOMAINS, kept, list, one, partsOf } from '../rooms/history/kept.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startHeddle } from '../support/heddle.ts'

test('every request and job is kept with its tool calls, statements, logs, events and failures, and survives kill -9', async (t) => {
  const folder = temporaryFolder(t)
  const env = {
    HISTORY_ENABLED: 'true',
    HISTORY_PATH: join(folder, 'history.db'),
    LANE_STALL_MS: '2000',
    REPLICA_ID: 'shop',
  }
  const service = await startHeddle(t, { domains: DOMAINS, lanes: 1, env })

  await service.post('/orders', { item: 'loom', quantity: 13 })
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
  assert.match(attempts[2]!.error!.stack, /charge-card\.ts:9:11/)

  const [failedCall] = partsOf(await one(service, broken!.id))
  assert.match(failedCall!.error!.message, /no such column: missing/)
  assert.match(failedCall!.calls![0]!.statement!, /SELECT missing/)

  assert.match(loop!.error!, /^Lane 0 died: .*place-order\.ts:27:/)
  assert.match(partsOf(await one(service, loop!.id)).find(({ type }) => type === 'death')!.line!, /place-order\.ts:27:/)

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
