import { ConsoleSpanExporter, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace-node'
import type { Settings } from '../config/schema.ts'
import { messageOf } from '../errors/wire.ts'

/** To the receiver that is set, else to the console. The library itself reads the headers, OTEL_EXPORTER_OTLP_HEADERS. @throws for settings that it cannot use */
export async function exporterOf(settings: Settings): Promise<SpanExporter> {
  const { otelExporterOtlpEndpoint: url, otelBspExportTimeout: timeoutMillis } = settings
  if (url === undefined) return new ConsoleSpanExporter()
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc')
  try {
    return new OTLPTraceExporter({ url, timeoutMillis })
  } catch (error) {
    throw new Error(withoutValue(messageOf(error)))
  }
}

/** What is wrong with a header is said with its value, which is a secret. */
function withoutValue(why: string): string {
  return why.replace(/ value ".*" contains/s, ' value in OTEL_EXPORTER_OTLP_HEADERS contains')
}

/** Why an export failed. */
export interface ExportFault {
  readonly why: string
  /** `again`: the same may be taken later. `apart`: it never left, and one span may be why. `lost`: the receiver does not want it. */
  readonly kind: 'again' | 'apart' | 'lost'
}

/** gRPC's codes that a client may answer by trying again. Source: OTLP 1.7, section "Failures" of OTLP/gRPC. */
const RETRYABLE: ReadonlySet<unknown> = new Set([1, 4, 10, 11, 14, 15])

/** Resolves with why it failed; null when the receiver has taken the spans. */
export function exportSpans(
  exporter: SpanExporter,
  spans: ReadableSpan[],
  withinMs: number,
): Promise<ExportFault | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve({ why: `no answer within ${withinMs} ms`, kind: 'lost' }), withinMs)
    const settle = (fault: ExportFault | null): void => {
      clearTimeout(timer)
      resolve(fault)
    }
    try {
      exporter.export(spans, ({ code, error }) => settle(code === EXPORTED ? null : faultOf(error)))
    } catch (error) {
      settle({ why: messageOf(error), kind: 'apart' })
    }
  })
}

/** `ExportResultCode.SUCCESS` of the library. */
const EXPORTED = 0

function faultOf(error: Error | undefined): ExportFault {
  const { code, details, message } = (error ?? {}) as { code?: unknown; details?: unknown; message?: unknown }
  const why = String(details || message || 'the exporter gives no reason')
  if (typeof code !== 'number') return { why, kind: 'apart' }
  return { why, kind: RETRYABLE.has(code) ? 'again' : 'lost' }
}
