// The tool `telemetry`.
import { createRequire } from 'node:module'
import type { Telemetry } from '../../contracts/telemetry.ts'
import type { Tool } from '../../contracts/tool.ts'
import { needPackages } from '../../core/modules/optional-package.ts'

type OtelApi = typeof import('@opentelemetry/api')

// `require`, because `getTracer` is synchronous; with the first call, so that a thread that does not trace does not load the API.
// The API keeps its provider on globalThis, so an ESM import of the API has the same one.
let otel: OtelApi | undefined
const require = createRequire(import.meta.url)

/** @throws PACKAGE_MISSING */
function load(): OtelApi {
  needPackages('telemetry.getTracer', ['@opentelemetry/api'])
  return require('@opentelemetry/api') as OtelApi
}

/** Tracers of `@opentelemetry/api`. They do nothing until a provider is registered in this thread. */
export default class TelemetryTool implements Tool {
  readonly name = 'telemetry'

  api(): Telemetry {
    return {
      getTracer: (name) => {
        otel ??= load()
        return otel.trace.getTracer(String(name))
      },
    }
  }
}
