// The tool `telemetry`.
import type { Tracer } from '@opentelemetry/api'

export interface Telemetry {
  /** A tracer for custom spans. When tracing is off it is the no-op tracer of OpenTelemetry's API. */
  getTracer(name: string): Tracer
}
