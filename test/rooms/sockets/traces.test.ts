import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { otlpReceiver } from '../../support/otlp/receiver.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { openWebSocket } from '../../support/web-socket.ts'

const folder = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

test('the handshake is a request, and what the handlers do stands under it, in the trace that the client began', async (t) => {
  const receiver = await otlpReceiver(t)
  const heddle = await startHeddle(t, {
    domains: [folder('domains'), SHIPPED],
    lanes: 1,
    env: {
      OTEL_ENABLED: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
      OTEL_BSP_SCHEDULE_DELAY: '50',
    },
  })
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const client = await openWebSocket(heddle.port, '/talk/a', { traceparent: `00-${traceId}-b7ad6b7169203331-01` })
  await client.text(1)
  client.send('publish')
  await client.text(2)
  client.send('throw')
  await client.ended()
  await receiver.until(
    (spans) =>
      spans.some(({ name }) => name === 'talk.TalkToClients.close') &&
      spans.some(({ name }) => name === 'event_bus.publish'),
    'the last of its spans',
  )
  const spans = receiver.spans.filter((span) => span.traceId === traceId)
  const request = spans.find(({ name }) => name === 'GET /talk/:room')!
  assert.equal(request.attributes['http.response.status_code'], 101)
  const handlers = spans.filter(({ parentSpanId }) => parentSpanId === request.spanId)
  assert.deepEqual(
    handlers.map(({ name, status }) => `${name} ${status.code}`),
    [
      'talk.TalkToClients.open UNSET',
      'talk.TalkToClients.message UNSET',
      'talk.TalkToClients.message ERROR',
      'talk.TalkToClients.close UNSET',
    ],
  )
  const published = spans.find(({ name }) => name === 'event_bus.publish')!
  assert.equal(published.parentSpanId, handlers[1]!.spanId)
  assert.deepEqual(receiver.faults, [])
})
