import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeRequestId } from '../../../src/primary/http/request-head.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { DOMAINS, kept, list, one, type Part, partsOf } from './kept.ts'

test('an id that a client has chosen is searched, and never takes the place of another request', async (t) => {
  const folder = temporaryFolder(t)
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
  // Before its lane dies: a delivery that dies with it would have the death as its error.
  await kept(
    () => list(service, 'status=failed&route=/orders'),
    (all) => all.some(({ path, error }) => path === '/orders' && error !== null),
  )
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
