/** The receiver of spans: OpenTelemetry's own exporter, for OTLP over gRPC or for the console. A batch is sent until it is taken or refused, or until its time is up. */
import { createRequire } from 'node:module'
import { DiagLogLevel, diag } from '@opentelemetry/api'
import type { ExportResult } from '@opentelemetry/core'
import { ConsoleSpanExporter, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace-node'
import type { Settings } from '../core/config/schema.ts'
import { messageOf } from '../core/errors/description.ts'

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
  #isHurried = false
  #wake: () => void = () => {}

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
    this.#isHurried = true
    this.#wake()
  }

  /** @returns how many of the spans were not taken */
  async send(spans: ReadableSpan[]): Promise<number> {
    const deadlineMs = Date.now() + this.#settings.otelBspExportTimeout
    for (let pauseMs = RETRY_MIN_MS; ; pauseMs = Math.min(RETRY_MAX_MS, pauseMs * 2)) {
      if (this.#exporter === null) return spans.length
      const fault = await exportSpans(this.#exporter, spans, Math.max(1, deadlineMs - Date.now()))
      if (fault === null) return 0
      const isOver = !fault.mayBeTakenLater || this.#isHurried || Date.now() + pauseMs > deadlineMs
      this.#onTrouble(fault.why, isOver ? spans.length : 0)
      if (!isOver) await this.#pause(pauseMs)
      // A new connection, because the old one would wait longer and longer by itself.
      void this.#exporter.shutdown().catch(() => {})
      this.#connect()
      if (isOver) return spans.length
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
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
  return new Promise((resolve) => {
    const why = `no answer within ${withinMs} ms`
    const timer = setTimeout(() => resolve({ why, mayBeTakenLater: false }), withinMs)
    const settle = (fault: ExportFault | null): void => {
      clearTimeout(timer)
      resolve(fault)
    }
    try {
      exporter.export(spans, ({ code, error }: ExportResult) => settle(code === EXPORTED ? null : faultOf(error)))
    } catch (error) {
      settle({ why: withoutValue(messageOf(error)), mayBeTakenLater: false })
    }
  })
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
