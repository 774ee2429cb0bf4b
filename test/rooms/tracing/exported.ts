import assert from 'node:assert/strict'
import type { Heddle, LogLine } from '../../support/heddle.ts'
import type { OtlpReceiver } from '../../support/otlp/receiver.ts'

const WARNING = 40
export const ROOT = 'GET /hello/:name'
export const PARENT = 'b7ad6b7169203331'

export const tracedBy = ({ endpoint }: OtlpReceiver, more: Record<string, string> = {}) => ({
  OTEL_ENABLED: 'true',
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_BSP_SCHEDULE_DELAY: '50',
  ...more,
})

/** A trace of our own making, so that its spans can be told from others. */
export let traces = 0
export const nextTraceId = (): string => (++traces).toString(16).padStart(32, 'a')

export const parentIn = (traceId: string): string => `00-${traceId}-${PARENT}-01`

/** @returns how long it took, in milliseconds */
export async function hello(heddle: Heddle, traceId = nextTraceId()): Promise<number> {
  const beganMs = performance.now()
  const { status } = await heddle.json('/hello/ada', { headers: { traceparent: parentIn(traceId) } })
  assert.equal(status, 200)
  return performance.now() - beganMs
}

export const warnings = (logs: readonly LogLine[], { endpoint }: OtlpReceiver): LogLine[] =>
  logs.filter(({ level, ...line }) => level >= WARNING && JSON.stringify(line).includes(new URL(endpoint).host))
