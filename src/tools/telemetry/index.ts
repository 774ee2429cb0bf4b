import { createRequire } from 'node:module'
import type { Telemetry } from '../../contracts/telemetry.ts'
import type { Tool } from '../../contracts/tool.ts'

type OtelApi = typeof import('@opentelemetry/api')

// `require`, because `getTracer` is synchronous; with the first call, so that a thread that does not trace does not load the API.
// The API keeps its provider on globalThis, so an ESM import of the API has the same one.
let otel: OtelApi | undefined
const require = createRequire(import.meta.url)

/** Tracers of `@opentelemetry/api`. They do nothing until a provider is registered in this thread. */
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
