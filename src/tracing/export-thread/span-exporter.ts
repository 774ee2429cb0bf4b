import { createRequire } from 'node:module'
import type { ExportResult } from '@opentelemetry/core'
import type { IExportTraceServiceResponse } from '@opentelemetry/otlp-transformer'
import type { Settings } from '../../core/config/schema.ts'
import { messageOf } from '../../core/errors/description.ts'
import { consoleExporter } from './console-exporter.ts'
import { type Batch, exportRequest } from './export-request.ts'

type OtlpGrpc = typeof import('@opentelemetry/otlp-grpc-exporter-base')
type OtlpTransformer = typeof import('@opentelemetry/otlp-transformer')

/** The parts of `@opentelemetry/exporter-trace-otlp-grpc`, which its exporter is made of too: spans come here encoded, and it would encode them. */
const part = <Module>(name: string): Module => {
  const require = createRequire(import.meta.url)
  return createRequire(require.resolve('@opentelemetry/exporter-trace-otlp-grpc'))(name) as Module
}

/** Sends or prints a batch of spans: the library's exporter, for OTLP or for the console. */
export interface SpanExporter {
  export(batch: Batch, onResult: (result: ExportResult) => void): void
  shutdown(): Promise<void>
}

/**
 * The exporter for the endpoint of the settings, or for the console without one. The library itself reads OTEL_EXPORTER_OTLP_HEADERS.
 * @param onPartial called when the receiver took only a part of a batch
 * @throws for settings that the library refuses
 */
export async function exporterOf(settings: Settings, onPartial: (why: string) => void): Promise<SpanExporter> {
  const { otelExporterOtlpEndpoint: url, otelBspExportTimeout: timeoutMillis } = settings
  if (url === undefined) return consoleExporter()
  const { convertLegacyOtlpGrpcOptions, createEmptyMetadata, createOtlpGrpcExportDelegate } = part<OtlpGrpc>(
    '@opentelemetry/otlp-grpc-exporter-base',
  )
  const { ProtobufTraceSerializer } = part<OtlpTransformer>('@opentelemetry/otlp-transformer')
  // Loads the gRPC client, which takes a second on a busy machine, before the first spans wait for it.
  createEmptyMetadata()
  const serializer = {
    serializeRequest: exportRequest,
    deserializeResponse: (bytes: Uint8Array) => {
      const why = rejectionOf(ProtobufTraceSerializer.deserializeResponse(bytes))
      if (why !== null) onPartial(why)
    },
  }
  try {
    return createOtlpGrpcExportDelegate<Batch, void>(
      convertLegacyOtlpGrpcOptions({ url, timeoutMillis }, 'TRACES'),
      serializer,
      'otlp_grpc_span_exporter',
      { name: 'span', countItems: (batch) => batch.length },
      undefined,
      'TraceExportService',
      '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
    )
  } catch (error) {
    throw new Error(withoutValue(messageOf(error)))
  }
}

/** Why a receiver took only a part; null when it took all and has no message. */
function rejectionOf({ partialSuccess }: IExportTraceServiceResponse): string | null {
  const { rejectedSpans = 0, errorMessage = '' } = partialSuccess ?? {}
  return rejectedSpans === 0 && errorMessage === '' ? null : `${errorMessage} (${rejectedSpans} spans rejected)`
}

/** The library's message about an invalid header contains the header's value, which is a secret. */
function withoutValue(why: string): string {
  return why.replace(/ value ".*" contains/s, ' value in OTEL_EXPORTER_OTLP_HEADERS contains')
}

/** Why an export failed. */
export interface ExportFault {
  readonly why: string
  /** The receiver may take the same batch later. */
  readonly mayBeTakenLater: boolean
}

/** gRPC codes after which a client may try again. Source: OTLP 1.7, section "Failures" of OTLP/gRPC. */
const RETRYABLE: ReadonlySet<unknown> = new Set([1, 4, 10, 11, 14, 15])

/** Resolves with the reason of a failure; null when the receiver has taken the spans. */
export function exportSpans(exporter: SpanExporter, batch: Batch, withinMs: number): Promise<ExportFault | null> {
  return new Promise((resolve) => {
    const why = `no answer within ${withinMs} ms`
    const timer = setTimeout(() => resolve({ why, mayBeTakenLater: false }), withinMs)
    const settle = (fault: ExportFault | null): void => {
      clearTimeout(timer)
      resolve(fault)
    }
    try {
      exporter.export(batch, ({ code, error }) => settle(code === EXPORTED ? null : faultOf(error)))
    } catch (error) {
      settle({ why: messageOf(error), mayBeTakenLater: false })
    }
  })
}

/** `ExportResultCode.SUCCESS` of the library. */
const EXPORTED = 0

function faultOf(error: Error | undefined): ExportFault {
  const { code, details, message } = (error ?? {}) as { code?: unknown; details?: unknown; message?: unknown }
  return {
    why: String(details || message || 'the exporter gives no reason'),
    mayBeTakenLater: RETRYABLE.has(code),
  }
}
