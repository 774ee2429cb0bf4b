import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { NATIVE } from './native.ts'

test('clients that leave early pile up no work: what their handlers hold is refused to others until they have settled', async (t) => {
  const heddle = await startHeddle(t, { domains: NATIVE, lanes: 1, env: { LANE_MAX_INFLIGHT: '2' } })
  const leave = () => heddle.fetch('/wait?ms=3000', { signal: AbortSignal.timeout(300) }).catch(() => null)
  const good = async () => (await heddle.fetch('/good')).status
  await until(async () => {
    await Promise.all([leave(), leave()])
    return (await good()) === 503
  }, 'no place is left')
  await until(async () => (await good()) === 200, 'they have settled')
  assert.equal(await heddle.stop(), 0)
})

const guarded = `
export default class Guarded {
  constructor({ http }) {
    http.before(async (_, context) => {
      if (context.path === '/late') await new Promise((resolve) => setTimeout(resolve, 4000))
    })
    http.addStream('/late', (_, stream) => stream.send('begun'))
    http.addEndpoint('/good', 'GET', () => ({}))
  }
}
`

test('streams whose guards do not end are answered 504, and hold their places until the guards have settled', async (t) => {
  const folder = await folderOf(t, { 'late/plugins/guarded.ts': guarded })
  const env = { LANE_MAX_INFLIGHT: '2', HTTP_HANDLER_TIMEOUT_MS: '1000' }
  const heddle = await startHeddle(t, { domains: [folder], lanes: 1, env })
  const streams = await Promise.all([1, 2].map(() => heddle.json('/late')))
  assert.deepEqual(
    streams.map(({ status }) => status),
    [504, 504],
  )
  const good = async () => (await heddle.fetch('/good')).status
  assert.equal(await good(), 503, 'no place is left')
  await until(async () => (await good()) === 200, 'they have settled')
  const [told] = heddle.logs.filter(({ level }) => level >= 50)
  assert.match(told!.msg, /^\/late in its before hook \(.*guarded.ts:\d+\) failed: It had not ended/)
  assert.equal(await heddle.stop(), 0)
})
