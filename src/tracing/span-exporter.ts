import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-node'
import { ConsoleSpanExporter } from '@opentelemetry/sdk-trace-node'
import type { Settings } from '../config/schema.ts'
import { messageOf } from '../errors/wire.ts'

/** To the receiver that is set, else to the console. The library itself reads the headers, OTEL_EXPORTER_OTLP_HEADERS. @throws for settings that it cannot use */
export async function exporterOf({ otelExporterOtlpEndpoint: url }: Settings): Promise<SpanExporter> {
  if (url === undefined) return new ConsoleSpanExporter()
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc')
  try {
    return new OTLPTraceExporter({ url })
  } catch (error) {
    throw new Error(withoutValue(messageOf(error)))
  }
}

/** What is wrong with a header is said with its value, which is a secret. */
function withoutValue(why: string): string {
  return why.replace(/ value ".*" contains/s, ' value in OTEL_EXPORTER_OTLP_HEADERS contains')
}

/** Resolves with why it failed; null when the receiver has taken the spans. */
export function exportSpans(exporter: SpanExporter, spans: ReadableSpan[], withinMs: number): Promise<string | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(`no answer within ${withinMs} ms`), withinMs)
    exporter.export(spans, ({ code, error }) => {
      clearTimeout(timer)
      resolve(code === EXPORTED ? null : reasonOf(error))
    })
  })
}

/** `ExportResultCode.SUCCESS` of the library. */
const EXPORTED = 0

function reasonOf(error: Error | undefined): string {
  const { details, message } = (error ?? {}) as { details?: unknown; message?: unknown }
  return String(details || message || 'the exporter gives no reason')
}
