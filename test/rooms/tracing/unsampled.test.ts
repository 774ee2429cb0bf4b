import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { openWebSocket } from '../../support/web-socket.ts'

const DOMAINS = [fileURLToPath(new URL('./passing', import.meta.url))]

test('a request that is not sampled has a trace all the same, for those whom its handler asks', async (t) => {
  const heddle = await startHeddle(t, {
    domains: DOMAINS,
    lanes: 2,
    env: { OTEL_ENABLED: 'true', OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' },
  })
  const ask = async (headers: Record<string, string> = {}) =>
    ((await heddle.json('/pass-on', { headers })).body as { data: Record<string, string> }).data

  const { first, second, inEvent } = await ask()
  const [, traceId] = /^00-([0-9a-f]{32})-[0-9a-f]{16}-00$/.exec(first!)!
  assert.equal(second, first)
  assert.equal(inEvent!.slice(0, 35), `00-${traceId}`, 'the subscriber is in the same trace')
  assert.match(inEvent!, /-00$/)
  assert.notEqual((await ask()).first!.slice(0, 35), first!.slice(0, 35), 'each request has its own')

  const socket = await openWebSocket(heddle.port, '/listen')
  for (let n = 0; n < 2; n++) socket.send('tell')
  await socket.text(2)
  const told = socket.texts.map((text) => text.slice(0, 35))
  assert.equal(new Set(told).size, 1, 'all handlers of a socket are in one trace')

  const parent = `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}`
  const continued = await ask({ traceparent: `${parent}-00` })
  assert.match(continued.first!, new RegExp(`^00-${'a1'.repeat(16)}-[0-9a-f]{16}-00$`))
  const sampled = await ask({ traceparent: `${parent}-01` })
  assert.match(sampled.inEvent!, new RegExp(`^00-${'a1'.repeat(16)}-[0-9a-f]{16}-01$`), "the client's decision holds")
})
