import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ask, assertFailure, jsonOf } from '../../support/raw-client.ts'
import { COLLIDING, shareHeddle } from '../../support/shared-process.ts'

const heddle = shareHeddle({
  domains: COLLIDING,
  expectedError: ({ msg }) => /^Plugin rivals\.\w+ failed in boot: .* is registered already by /.test(msg),
})

const get = async (path: string): Promise<unknown> => jsonOf(await ask(heddle.port, 'GET', path)).data

async function plugins(): Promise<Record<string, { status: string; error?: string }>> {
  return jsonOf(await ask(heddle.port, 'GET', '/dump')).plugins
}

it('makes the second plugin with the same method and path DEAD, and its error names the first', async () => {
  const { 'rivals.First': first, 'rivals.Second': second } = await plugins()
  assert.equal(first!.status, 'OK')
  assert.equal(second!.status, 'DEAD')
  assert.equal(second!.error, 'GET /taken/:other is registered already by rivals.First')
  assert.equal(await get('/taken/1'), 'first')
})

it('serves no route of a plugin in a lane that is DEAD for another one', async () => {
  assertFailure(await ask(heddle.port, 'GET', '/second/alive'), 404, 'Not found')
})

it('lets two plugins share a path by different methods', async () => {
  assert.equal((await plugins())['rivals.OtherMethod']!.status, 'OK')
  assert.equal(jsonOf(await ask(heddle.port, 'POST', '/taken/1')).data, 'other method')
})

it('finds a collision between a primary plugin and one in the lanes', async () => {
  const { 'rivals.PrimaryFirst': primary, 'rivals.LaneLate': lane } = await plugins()
  assert.equal(primary!.status, 'OK')
  assert.equal(lane!.status, 'DEAD')
  assert.equal(lane!.error, 'GET /both is registered already by rivals.PrimaryFirst')
  assert.equal(await get('/both'), 'primary')
  assertFailure(await ask(heddle.port, 'GET', '/lane-late/alive'), 404, 'Not found')
})

it('finds a collision between two primary plugins', async () => {
  const { 'rivals.PrimaryLate': late } = await plugins()
  assert.equal(late!.status, 'DEAD')
  assert.equal(late!.error, 'GET /both is registered already by rivals.PrimaryFirst')
  assert.equal(await get('/both'), 'primary')
})

it('serves no route of a DEAD primary plugin', async () => {
  assertFailure(await ask(heddle.port, 'GET', '/primary-late/alive'), 404, 'Not found')
})

it('makes a plugin DEAD that registers one route twice', async () => {
  const { 'rivals.Sealed': sealed } = await plugins()
  assert.equal(sealed!.status, 'DEAD')
  assert.equal(sealed!.error, 'GET /sealed is registered already by rivals.Sealed')
  assertFailure(await ask(heddle.port, 'GET', '/sealed'), 404, 'Not found')
})

it('keeps the order of precedence across threads', async () => {
  assert.equal(await get('/across/static'), 'primary')
  assert.equal(await get('/across/else'), 'lane')
})
