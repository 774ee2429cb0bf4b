import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { otlpReceiver } from '../../support/otlp/receiver.ts'

const PACKAGES = fileURLToPath(new URL('../../../node_modules/', import.meta.url))
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'

/** Registers what an agent of OpenTelemetry does, by an API that says it is another version, and keeps its tracer. */
const AGENT = `const { NodeTracerProvider } = require('${PACKAGES}@opentelemetry/sdk-trace-node')
const provider = new NodeTracerProvider()
provider.register()
globalThis[Symbol.for('opentelemetry.js.api.1')].version = '1.99.0'
globalThis.agent = provider.getTracer('agent')
globalThis.active = () => globalThis[Symbol.for('opentelemetry.js.api.1')].context.active()`
const PLUGIN = `import { plugin } from 'heddle'
export default plugin(({ http }) => {
  http.get('/seen', () => {
    const span = globalThis.agent.startSpan('seen', {}, globalThis.active())
    return { data: { traceId: span.spanContext().traceId, parent: span.parentSpanContext?.spanId } }
  })
})`

test('what an agent of OpenTelemetry sees in a handler is part of the trace of the request', async (t) => {
  const receiver = await otlpReceiver(t)
  const folder = await folderOf(t, { 'agent.cjs': AGENT, 'domains/a/plugins/look.js': PLUGIN })
  const heddle = await startHeddle(t, {
    domains: [join(folder, 'domains')],
    lanes: 1,
    env: {
      NODE_OPTIONS: `--require ${join(folder, 'agent.cjs')}`,
      OTEL_ENABLED: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
    },
  })
  const headers = { traceparent: `00-${TRACE_ID}-b7ad6b7169203331-01` }
  const { body } = await heddle.json('/seen', { headers })
  const handler = await receiver.until((spans) => spans.find(({ name }) => name === 'a.Look.get'), 'of the handler')
  assert.deepEqual(body.data, { traceId: TRACE_ID, parent: handler.spanId })
})
