/** The receiver of spans: OpenTelemetry's own exporter, for OTLP over gRPC or for the console. A batch is sent until it is taken or refused, or until its time is up. */
import { createRequire } from 'node:module'
import { setTimeout as pause } from 'node:timers/promises'
import { DiagLogLevel, diag } from '@opentelemetry/api'
import type { ExportResult } from '@opentelemetry/core'
import { ConsoleSpanExporter, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace-node'
import type { Settings } from '../core/config/schema.ts'
import { messageOf } from '../core/errors/description.ts'
import { withTimeout } from '../core/schedule/waiting.ts'

/** Milliseconds before a batch that the receiver did not take is sent again: at first, and at most. */
const RETRY_MIN_MS = 500
const RETRY_MAX_MS = 5000
/** `ExportResultCode.SUCCESS` of the library. */
const EXPORTED = 0
/** gRPC codes after which a client may try again. Source: OTLP 1.7, section "Failures" of OTLP/gRPC. */
const RETRYABLE: ReadonlySet<unknown> = new Set([1, 4, 10, 11, 14, 15])

/** Why an export failed. */
interface ExportFault {
  readonly why: string
  /** The receiver may take the same batch later. */
  readonly mayBeTakenLater: boolean
}

export class Receiver {
  readonly #settings: Settings
  readonly #onTrouble: (why: string, lost: number) => void
  #exporter: SpanExporter | null = null
  readonly #hurried = new AbortController()

  constructor(settings: Settings, onTrouble: (why: string, lost: number) => void) {
    this.#settings = settings
    this.#onTrouble = onTrouble
  }

  /** A fault is reported, and then nothing is exported. */
  open(): void {
    const tell = (...said: unknown[]): void => this.#onTrouble(withoutValue(said.join(' ')), 0)
    // The library only logs that a receiver took a part, and settings that it cannot use.
    diag.setLogger(
      { error: tell, warn: tell, info() {}, debug() {}, verbose() {} },
      {
        logLevel: DiagLogLevel.WARN,
        suppressOverrideMessage: true,
      },
    )
    if (this.#settings.otelExporterOtlpEndpoint !== undefined) loadGrpc()
    this.#connect()
  }

  /** The library itself reads OTEL_EXPORTER_OTLP_HEADERS. */
  #connect(): void {
    const { otelExporterOtlpEndpoint: url, otelBspExportTimeout: timeoutMillis } = this.#settings
    try {
      this.#exporter =
        url === undefined ? new ConsoleSpanExporter() : new (library().OTLPTraceExporter)({ url, timeoutMillis })
    } catch (error) {
      this.#exporter = null
      this.#onTrouble(withoutValue(messageOf(error)), 0)
    }
  }

  /** From now on nothing is sent twice. */
  hurry(): void {
    this.#hurried.abort()
  }

  /** @returns how many of the spans were not taken */
  async send(spans: ReadableSpan[]): Promise<number> {
    const deadlineMs = Date.now() + this.#settings.otelBspExportTimeout
    for (let pauseMs = RETRY_MIN_MS; ; pauseMs = Math.min(RETRY_MAX_MS, pauseMs * 2)) {
      if (this.#exporter === null) return spans.length
      const fault = await exportSpans(this.#exporter, spans, Math.max(1, deadlineMs - Date.now()))
      if (fault === null) return 0
      const isOver = !fault.mayBeTakenLater || this.#hurried.signal.aborted || Date.now() + pauseMs > deadlineMs
      this.#onTrouble(fault.why, isOver ? spans.length : 0)
      if (!isOver) await pause(pauseMs, undefined, { signal: this.#hurried.signal }).catch(() => {})
      // A new connection, because the old one would wait longer and longer by itself.
      void this.#exporter.shutdown().catch(() => {})
      this.#connect()
      if (isOver) return spans.length
    }
  }
}

/** Loaded only where spans are sent: it brings gRPC. */
const library = (): typeof import('@opentelemetry/exporter-trace-otlp-grpc') =>
  createRequire(import.meta.url)('@opentelemetry/exporter-trace-otlp-grpc')

/** The library loads gRPC with its first export, which takes a second on a busy machine: here, before spans wait for it. */
function loadGrpc(): void {
  try {
    const within = createRequire(createRequire(import.meta.url).resolve('@opentelemetry/exporter-trace-otlp-grpc'))
    createRequire(within.resolve('@opentelemetry/otlp-grpc-exporter-base'))('@grpc/grpc-js')
  } catch {
    // It is somewhere else: the first spans wait.
  }
}

/** Resolves with the reason of a failure; null when the receiver has taken the spans. */
function exportSpans(exporter: SpanExporter, spans: ReadableSpan[], withinMs: number): Promise<ExportFault | null> {
  const answer = new Promise<ExportFault | null>((resolve) => {
    exporter.export(spans, ({ code, error }: ExportResult) => resolve(code === EXPORTED ? null : faultOf(error)))
  }).catch((error) => ({ why: withoutValue(messageOf(error)), mayBeTakenLater: false }))
  return withTimeout(answer, withinMs, { why: `no answer within ${withinMs} ms`, mayBeTakenLater: false })
}

function faultOf(error: Error | undefined): ExportFault {
  const { code, details, message } = (error ?? {}) as { code?: unknown; details?: unknown; message?: unknown }
  return {
    why: withoutValue(String(details || message || 'the exporter gives no reason')),
    mayBeTakenLater: RETRYABLE.has(code),
  }
}

/** The library's message about an invalid header contains the header's value, which is a secret. */
function withoutValue(why: string): string {
  return why.replace(/ value ".*" contains/s, ' value in OTEL_EXPORTER_OTLP_HEADERS contains')
}
