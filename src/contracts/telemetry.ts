import type { Tracer } from '@opentelemetry/api'

export interface Telemetry {
  /** A tracer for custom spans; the API's own no-op one when tracing is off. */
  getTracer(name: string): Tracer
}
