import { createRequire } from 'node:module'
import type { Telemetry } from '../../contracts/telemetry.ts'
import type { Tool } from '../../contracts/tool.ts'

type OtelApi = typeof import('@opentelemetry/api')

// A require because `getTracer` is synchronous, on the first call because an idle thread should not hold the API in memory.
// The API keeps its provider on globalThis, so it is the same one that an ESM import of it sees.
let otel: OtelApi | undefined
const require = createRequire(import.meta.url)

/** Tracers of `@opentelemetry/api`: no-ops until something in this thread registers a provider. */
export default class TelemetryTool implements Tool {
  readonly name = 'telemetry'

  api(): Telemetry {
    return {
      getTracer: (name) => {
        otel ??= require('@opentelemetry/api') as OtelApi
        return otel.trace.getTracer(String(name))
      },
    }
  }
}
